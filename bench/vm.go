//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace"
)

// A virtual machine, emulated and with KVM. What `up` may take in all is 4 s and 0.6 s; the
// limits are above a worker's on this machine's kernel, which takes about 0.05 s.
var (
	emulatedVM = ownKernel{name: "VM, emulated", other: "this kernel", up: 3950, call: 10, ownExec: true}
	kvmVM      = ownKernel{name: "VM, KVM", other: "this kernel", up: 550, call: 3, ownExec: true, work: kernelTasks}
)

// emulated measures a worker in a virtual machine without KVM.
func (b *bench) emulated() error { return b.vm(emulatedVM, "--emulate") }

// kvm measures one with KVM, where the processor has it.
func (b *bench) kvm() error { return b.vm(kvmVM) }

// vm measures a worker in a virtual machine beside one on this machine's kernel, both on
// namespaces, with Debian's QEMU and kernel.
func (b *bench) vm(k ownKernel, up ...string) error {
	if err := b.need("qemu-system-x86_64=qemu-system-x86", "npm=npm", "git=git", "tar=tar"); err != nil {
		return err
	}
	original, err := b.kernelTree()
	if err != nil {
		return err
	}
	home := filepath.Join(b.dir, "vm-home")
	env := []string{"HOME=" + home, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "WORKSHOP_ENGINE=namespace"}
	if err := b.setUpVM(home, env); err != nil {
		return err
	}
	in, err := testnet.Start(b.ctx, testnet.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	lookup := func(name string) (string, bool) {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value, true
			}
		}
		return os.LookupEnv(name)
	}
	return b.besideHost(k, kernelPlace{engine: "namespace", kernel: "vm", env: env, up: up, original: original,
		connect: func() (engine.Engine, error) {
			state := filepath.Join(home, ".local/state/workshop")
			return namespace.New(b.ctx, namespace.Options{StateDir: filepath.Join(state, "namespace"), CacheDir: filepath.Join(home, ".cache/workshop"), Lookup: lookup,
				Compared: engine.Compared{Dir: filepath.Join(state, "projects")}})
		}})
}

// setUpVM makes the kit, and names it in the settings below home.
func (b *bench) setUpVM(home string, env []string) error {
	script := exec.CommandContext(b.ctx, filepath.Join(filepath.Dir(b.bin), "scripts/vm-kernel"))
	script.Stderr = os.Stderr
	kernel, err := script.Output()
	if err != nil {
		return fmt.Errorf("scripts/vm-kernel: %w", err)
	}
	if err := os.Mkdir(home, 0o755); err != nil {
		return err
	}
	// Where KVM isn't hardware it says so, and has made the kit.
	_, err = b.timed(home, env, b.workshop(), "vm", "setup", "--kernel", strings.TrimSpace(string(kernel)))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 4 {
		return nil
	}
	return err
}
