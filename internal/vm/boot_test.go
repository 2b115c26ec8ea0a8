//go:build linux && amd64

package vm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/vm"
	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/vm/guest"
	"github.com/llmdo/workshop/internal/vm/kit"
	"github.com/llmdo/workshop/internal/vm/monitor"
	"github.com/llmdo/workshop/internal/vm/report"
)

// TestMain: this program is the init of hostile guests, too. Its last bytes say of which.
func TestMain(m *testing.M) {
	if os.Getpid() == 1 {
		hostile()
	}
	code := m.Run()
	os.RemoveAll(theKit.dir)
	os.Exit(code)
}

const markLen = 16

// mark makes this program the init of a hostile guest, and returns its file.
func mark(t *testing.T, kind string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "init")
	if err := os.WriteFile(path, fmt.Appendf(program, "%-*s", markLen, kind), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hostile is a guest that doesn't do as ours do.
func hostile() {
	program, _ := os.ReadFile("/init")
	kind := strings.TrimSpace(string(program[max(0, len(program)-markLen):]))
	port := func() *os.File {
		p, err := guest.Prepare(os.Stderr)
		if err != nil {
			fmt.Println(err)
		}
		return p
	}
	ready := carrier.Head{Kind: carrier.Ready}.Encode()
	message := append([]byte{6, 0, 0, 0, 0, 0, byte(len(ready))}, ready...)
	switch kind {
	case "exits":
		fmt.Println("the guest's last word \x1b[2J")
		os.Exit(3)
	case "silent":
		fmt.Println("the guest is silent")
	case "garbage":
		port().WriteString("this is no frame of the carrier")
	case "ready twice":
		port().Write(append(message, message...))
	case "opens":
		port().Write([]byte{1, 0, 0, 0, 1, 0, 1, byte(carrier.Session)})
	case "stays": // when its carrier ends
		port().Write(message)
	}
	time.Sleep(time.Hour)
}

// needs are QEMU and Debian's kernel, which the test of the engines' part installs.
func needs(t *testing.T) (tree string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 has such machines")
	}
	_, err := os.Stat(monitor.Program)
	testutil.Require(t, err == nil, "install qemu-system-x86")
	out, err := exec.Command("../../scripts/vm-kernel").CombinedOutput()
	testutil.Require(t, err == nil, fmt.Sprintf("scripts/vm-kernel: %v: %s", err, out))
	lines := strings.Fields(string(out))
	return lines[len(lines)-1]
}

// theKit is that of Debian's kernel, made once for all tests.
var theKit struct {
	once     sync.Once
	dir, kit string // what TestMain removes, and the kit in it
	err      error
}

func newKit(t *testing.T) (dir string) {
	t.Helper()
	tree := needs(t)
	theKit.once.Do(func() {
		if theKit.dir, theKit.err = os.MkdirTemp("", "workshop-kit-"); theKit.err == nil {
			theKit.err = os.Chmod(theKit.dir, 0o755)
		}
		var out, errs strings.Builder
		if theKit.err == nil && vm.Main([]string{"kit", "--tree", tree, "--dir", theKit.dir}, &out, &errs) != 0 {
			theKit.err = errors.New(out.String() + errs.String())
		}
		var made report.Answer
		if theKit.err == nil {
			theKit.err = json.Unmarshal([]byte(out.String()), &made)
		}
		theKit.kit = made.Dir
	})
	if theKit.err != nil {
		t.Fatal(theKit.err)
	}
	return theKit.kit
}

// ourInit is the file of workshop-init.
func ourInit(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "init")
	if err := testutil.Init(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// spec is an emulated machine with an init. guest may be nil.
func spec(t *testing.T, init string, guest *config.Guest) monitor.Spec {
	t.Helper()
	dir := newKit(t)
	p, err := monitor.ThisProcessor()
	if err != nil {
		t.Fatal(err)
	}
	initrd, err := kit.Initrd(dir, init, guest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { initrd.Close() })
	return monitor.Spec{Accelerator: config.TCG, Kernel: filepath.Join(dir, kit.Vmlinux), Initramfs: initrd, MemoryMiB: 256, CPUs: 1, TSCkHz: p.TSCkHz}
}

// run runs a command of workshop-vm.
func run(t *testing.T, wantCode int, args ...string) (a report.Answer) {
	t.Helper()
	var out, errs strings.Builder
	if code := vm.Main(args, &out, &errs); code != wantCode {
		t.Fatalf("%v: exit code %d, want %d: %s%s", args, code, wantCode, out.String(), errs.String())
	}
	if wantCode == 2 {
		return a
	}
	if err := json.Unmarshal([]byte(out.String()), &a); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out.String())
	}
	return a
}

// A guest of a kit boots, says that it is ready, and powers off when its carrier ends.
func TestBoots(t *testing.T) {
	tree, init := needs(t), ourInit(t)
	made := run(t, 0, "kit", "--tree", tree, "--dir", t.TempDir())
	a := run(t, 0, "check", "--emulate", "--kit", made.Dir, "--init", init)
	if a.QEMU == nil || a.Kit == nil || a.Kit.Kernel != made.Kit.Kernel || a.Ready <= 0 {
		t.Fatalf("got %+v", a)
	}
	t.Logf("QEMU %s, %d files, %d MB; kernel %s; ready after %v", a.QEMU.Version, len(a.QEMU.Files), a.QEMU.Size>>20, a.Kit.Kernel.Release, a.Ready.Round(time.Millisecond))
	m, err := monitor.Boot(t.Context(), spec(t, init, nil), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m.Stop()
	if took := time.Since(began); took >= monitor.PowerOff {
		t.Errorf("it was killed after %v, and did not power off", took)
	}
}

// B13: what this machine's KVM is doesn't change between two commands; emulation is refused.
func TestKVM(t *testing.T) {
	p, err := monitor.ThisProcessor()
	if err != nil {
		t.Fatal(err)
	}
	wantCode := 0
	if p.Hardware("me") != nil {
		wantCode = 1
	}
	if a := run(t, wantCode, "kvm"); a.Refused != (wantCode == 1) || (a.Problem != "") != a.Refused {
		t.Errorf("got %+v", a)
	}
	if wantCode == 0 {
		return // the next boots
	}
	if a := run(t, 1, "check", "--kit", "/nowhere", "--init", "/nowhere"); !a.Refused || !strings.Contains(a.Problem, "(B13)") {
		t.Errorf("got %+v", a)
	}
}

// A wrong command line is told, and nothing is done.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"run"}, {"kit"}, {"kit", "--tree", "/"}, {"check"}, {"check", "--kit", "/x"}, {"check", "--kit", "/x", "--init", "/x", "more"}, {"kvm", "--emulate"}, {"qemu", "more"}} {
		run(t, 2, args...)
	}
}

// B6: QEMU needs no file but those of its closure, no user but the worker's, no network.
func TestBootsInAnEmptyRoot(t *testing.T) {
	testutil.Require(t, os.Getuid() == 0, "it needs root")
	c, err := monitor.FindClosure(os.DirFS("/"), config.TCG)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	s := spec(t, ourInit(t), nil)
	for _, name := range append(c.Files, s.Kernel) {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for d := root; d != "/tmp" && d != "/"; d = filepath.Dir(d) { // the user needs a way to it
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	proc := filepath.Join(root, "proc") // every container has it
	if err := os.Mkdir(proc, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("proc", proc, "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(proc, unix.MNT_DETACH) })
	m, err := monitor.Start(s, func(cmd *exec.Cmd) {
		cmd.SysProcAttr.Chroot = root
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65532, Gid: 65532}
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := m.Ready(ctx); err != nil {
		t.Error(err)
	}
}

// A guest that isn't ready in time, or ends, is shown by its console.
func TestConsoleIsShown(t *testing.T) {
	for kind, c := range map[string]struct {
		timeout time.Duration
		want    []string
	}{
		"exits":  {time.Minute, []string{"the machine ended before its guest was ready; its console said last:\n", "the guest's last word \ufffd[2J\n", "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000300"}},
		"silent": {20 * time.Second, []string{"the guest was not ready within 20s; its console said last:\n", "\n[    "}}, // lines of the kernel, at least,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m, err := monitor.Boot(t.Context(), spec(t, mark(t, kind), nil), c.timeout)
			if err == nil {
				m.Stop()
				t.Fatal("it is ready")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			if lines := strings.Count(err.Error(), "\n"); lines > 20 {
				t.Errorf("%d lines", lines)
			}
		})
	}
}

// B60: a guest that breaks the carrier's rules is ended, and one that goes on without it is.
func TestHostileGuests(t *testing.T) {
	for kind, want := range map[string]string{
		"garbage":     "the peer broke the protocol: a frame of kind 116",
		"ready twice": "the peer broke the protocol: it is ready twice",
		"opens":       "the peer broke the protocol: it opened a stream",
		"stays":       "",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m, err := monitor.Start(spec(t, mark(t, kind), nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err = m.Ready(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			if kind == "stays" {
				m.Stop()
			}
			select {
			case <-m.Done():
			case <-time.After(monitor.PowerOff + 5*time.Second):
				m.Stop()
				t.Error("it goes on")
			}
			if got := fmt.Sprint(m.Err()); want != "" && !strings.Contains(got, want) {
				t.Errorf("got %s, want %q", got, want)
			}
		})
	}
}
