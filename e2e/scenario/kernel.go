//go:build linux

package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/e2e/ownengine"
	"github.com/llmdo/workshop/workshop"
)

var kernelFlag = flag.String("kernel", string(workshop.KernelHost), "the kernel of workers whose file doesn't say one: host, sandboxed (gVisor, on docker) or vm (emulated, on namespace and rootless)")

// TheKernel is the one of this run.
func TheKernel() workshop.Kernel { return workshop.Kernel(*kernelFlag) }

// kernelEngines are the engines on which scenarios run with each kernel but this machine's.
var kernelEngines = map[workshop.Kernel][]Engine{workshop.KernelSandboxed: {Docker}, workshop.KernelVM: {Namespace, Rootless}}

// kernelEdits is what the program that a run with such a kernel tests has otherwise than its
// source: files and lines of scenarios stay as they are.
var kernelEdits = map[workshop.Kernel][]struct{ file, old, new string }{
	workshop.KernelSandboxed: {{"workshop/defaults.go", "{V: KernelHost}", "{V: KernelSandboxed}"}},
	workshop.KernelVM: {
		{"workshop/defaults.go", "{V: KernelHost}", "{V: KernelVM}"},
		{"internal/app/prepare.go", "env.Emulate || c.emulated", "true"},
	},
}

// otherKernel reports whether the run has programs of its own, which the process of an
// [Alone] test has from it.
func otherKernel() bool { return TheKernel() != workshop.KernelHost && os.Getenv(alone) == "" }

// ownDocker reports whether the run has a dockerd of its own, with gVisor.
func ownDocker() bool { return TheKernel() == workshop.KernelSandboxed && os.Getenv(alone) == "" }

// checkKernel reports a kernel that the run's engine doesn't give.
func checkKernel() error {
	if k := TheKernel(); k != workshop.KernelHost && !slices.Contains(kernelEngines[k], TheEngine()) {
		return fmt.Errorf("-kernel %s -engine %s: there are host everywhere, sandboxed on docker, vm on namespace and rootless", k, TheEngine())
	}
	return nil
}

// buildKernel makes the programs of a run with another kernel, in a directory that becomes
// [Lab.Bin].
func buildKernel() error {
	root, err := repository()
	if err != nil {
		return err
	}
	from := os.Getenv("WORKSHOP_BIN")
	if from == "" {
		if from, err = makeBuild(root); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "workshop-e2e-kernel-")
	if err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.CopyFS(dir, os.DirFS(from)), os.Setenv("WORKSHOP_BIN", dir)); err != nil {
		return err
	}
	replace := map[string]string{}
	for _, e := range kernelEdits[TheKernel()] {
		path := filepath.Join(root, e.file)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := bytes.Count(text, []byte(e.old)); n != 1 {
			return fmt.Errorf("%s has %q %d times", e.file, e.old, n)
		}
		replace[path] = filepath.Join(dir, filepath.Base(e.file))
		if err := os.WriteFile(replace[path], bytes.Replace(text, []byte(e.old), []byte(e.new), 1), 0o600); err != nil {
			return err
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err := errors.Join(err, os.WriteFile(overlay, b, 0o600)); err != nil {
		return err
	}
	build := command(root, "go", "build", "-overlay", overlay, "-ldflags", "-s -w", "-o", filepath.Join(dir, "workshop"), "./cmd/workshop")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func makeBuild(root string) (bin string, err error) {
	if out, err := command(root, "make", "build").CombinedOutput(); err != nil {
		return "", fmt.Errorf("make build: %w\n%s", err, out)
	}
	return filepath.Join(root, "bin"), nil
}

// gVisor are the arguments of an engine's that has gVisor: none in a run that doesn't need
// it. The file that they name is in a directory of the caller's.
func gVisor(dir string) ([]string, error) {
	if TheKernel() != workshop.KernelSandboxed {
		return nil, nil
	}
	program, err := exec.Command("../scripts/runsc").Output()
	if err != nil {
		return nil, fmt.Errorf("scripts/runsc: %w", err)
	}
	return ownengine.WithGVisor(filepath.Join(dir, "daemon.json"), strings.TrimSpace(string(program)))
}

// newDockerWithGVisor starts a dockerd of this run, which has gVisor.
func newDockerWithGVisor() (*ownengine.Service, error) {
	args, err := gVisor(os.Getenv("WORKSHOP_BIN"))
	if err != nil {
		return nil, err
	}
	own, err := ownengine.NewDocker(args...)
	if err == nil {
		err = errors.Join(own.Start(), os.Setenv("DOCKER_HOST", own.Host)) // for everything that the run does
	}
	return own, err
}
