//go:build linux

package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// A static program that does nothing: exit(0) for amd64, 132 bytes, so that
// what is measured is the way to its first instruction.
var nothing = []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x02\x00\x3e\x00\x01\x00\x00\x00\x78\x00\x40\x00\x00\x00\x00\x00" + // EXEC, x86-64, entry 0x400078
	"\x40\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x40\x00\x38\x00\x01\x00\x00\x00\x00\x00\x00\x00" +
	"\x01\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + // LOAD, r-x
	"\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00" +
	"\x84\x00\x00\x00\x00\x00\x00\x00\x84\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x10\x00\x00\x00\x00\x00\x00" +
	"\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05\x90\x90\x90") // mov $60,%eax; xor %edi,%edi; syscall

// BenchmarkStart compares, in one run and by turns, from Start to the end of a
// program that does nothing: a worker with all its fences, bwrap
// --unshare-all, and what of ours is the namespaces' and workshop-init's own
// start-up. It wants bwrap; ratio is ours against it. What other processes do
// on the machine is longer than all of it: chrt -f 10 keeps them out.
func BenchmarkStart(b *testing.B) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		b.Skip("no bwrap: scripts/need bwrap=bubblewrap")
	}
	dir := filepath.Dir(binary())
	program := filepath.Join(dir, "workshop-init")
	if ready := os.Getenv("WORKSHOP_INIT"); ready != "" { // one that is built already
		bytes, err := os.ReadFile(ready)
		if err == nil {
			err = os.WriteFile(program, bytes, 0o755)
		}
		if err != nil {
			b.Fatal(err)
		}
	} else {
		if err := testutil.Init(program); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "true"), nothing, 0o755); err != nil {
		b.Fatal(err)
	}
	for _, mode := range modes() {
		b.Run(mode, func(b *testing.B) {
			c := container(mode)
			c.Process.Args = []string{"/true"}
			c.Mounts = []spec.Mount{
				{Type: spec.Bind, Source: filepath.Join(dir, "true"), Target: "/true", ReadOnly: true},
				{Type: spec.Bind, Source: "/usr", Target: "/usr", ReadOnly: true},
				{Type: spec.Tmpfs, Target: "/tmp", Size: 1 << 20, Mode: 0o1777},
			}
			r := run(b, mode, job{Spec: c, Bench: max(b.N, 50), Program: program})
			if r.Err != "" {
				b.Fatal(r.Err)
			}
			for _, line := range lines(r.Out) {
				var name string
				var value float64
				if _, err := fmt.Sscan(line, &name, &value); err != nil {
					b.Fatal(line)
				}
				b.ReportMetric(value, name)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestSplit prints how long the steps of the stage take (-v).
func TestSplit(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		c := container(mode, "hello")
		c.Mounts = append(c.Mounts, spec.Mount{Type: spec.Tmpfs, Target: "/tmp", Size: 1 << 20, Mode: 0o1777})
		r := run(t, mode, job{Spec: c, Split: true})
		if r.Err != "" {
			t.Fatal(r.Err)
		}
		t.Log(r.Out)
	})
}

// bench runs in the supervisor.
func bench(j job, w io.Writer) error {
	runtime.LockOSThread()
	children := newReaper()
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("proc", "/proc", "proc", 0, "")); err != nil {
		return err
	}
	dir := filepath.Dir(j.Program)
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return err
	}
	plain := func(path string, flags uintptr, args ...string) error {
		p, err := children.Start(path, append([]string{path}, args...), &syscall.ProcAttr{Env: []string{}, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Cloneflags: flags}})
		if err == nil {
			if status := p.Wait(); status.ExitStatus() != 0 {
				return fmt.Errorf("it ended with %d", status.ExitStatus())
			}
		}
		return err
	}
	var begun []time.Duration
	rows := []struct {
		name string
		run  func() error
	}{
		{"ours-ms", func() error {
			at := time.Now()
			p, err := Start(children, j.Program, j.Spec, Options{})
			if err == nil {
				begun = append(begun, time.Since(at))
				p.Wait()
			}
			return err
		}},
		{"bwrap-ms", func() error {
			// It wants to be an ordinary program: without the supervisor's capabilities.
			if os.Getuid() != 0 {
				_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
				defer func() {
					for n := range uintptr(41) {
						_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, n, 0, 0)
					}
				}()
			}
			return plain(bwrap, 0, "--unshare-all", "--ro-bind", "/usr", "/usr", "--ro-bind", filepath.Join(dir, "true"), "/true", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/true")
		}},
		{"namespaces-ms", func() error {
			return plain(filepath.Join(dir, "true"), unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWIPC|unix.CLONE_NEWUTS|unix.CLONE_NEWNET)
		}},
		{"exec-ms", func() error { return plain(filepath.Join(dir, "true"), 0) }},
		{"init-ms", func() error { // its start-up, to its first line of main
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer null.Close()
			p, err := children.Start(j.Program, []string{"workshop-init", "none"}, &syscall.ProcAttr{Env: []string{"GOGC=off", "GOMAXPROCS=1"}, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}})
			if err == nil {
				p.Wait()
			}
			return err
		}},
	}
	times := map[string][]time.Duration{}
	before := childrenTime()
	for range j.Bench {
		for _, r := range rows {
			at := time.Now()
			if err := r.run(); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			times[r.name] = append(times[r.name], time.Since(at))
			cpu := r.name[:len(r.name)-len("-ms")] + "-cpu-ms" // of what ended; on a busy machine it says more
			used := childrenTime()
			times[cpu] = append(times[cpu], used-before)
			before = used
		}
	}
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2]) / 1e6
	}
	for _, r := range rows {
		cpu := r.name[:len(r.name)-len("-ms")] + "-cpu-ms"
		fmt.Fprintln(w, r.name, median(times[r.name]))
		fmt.Fprintln(w, cpu, median(times[cpu]))
	}
	fmt.Fprintln(w, "executed-ms", median(begun))
	fmt.Fprintln(w, "ratio", median(times["ours-ms"])/median(times["bwrap-ms"]))
	return nil
}

// childrenTime is the processors' time of all children that were collected.
func childrenTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchResult(j job) int {
	var out strings.Builder
	r := result{}
	if err := bench(j, &out); err != nil {
		r.Err = err.Error()
	}
	r.Out = out.String()
	_ = json.NewEncoder(os.Stdout).Encode(r)
	return 0
}
