package toolbox

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/landlock"
	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/toolbox/files"
	"github.com/llmdo/workshop/internal/toolbox/process"
)

// Process mode has no container, so a session there is three steps of one
// program: the keeper, to which everything falls that the session leaves, and
// which ends it; the fence, which takes from itself what a worker hasn't; and the
// session, which is executed again inside the fence. Nothing inside it can reach
// the keeper (landlock(7): scoped signals, ptrace).
var processSteps = map[string]func(spec *process.Spec, stdin, stdout *os.File) error{
	"keep": keep, "fence": fence, "serve": serveFenced,
}

const processFlag = "--process"

// processMain is `workshop-init tools --process STEP`.
func processMain(step string, stdin, stdout *os.File, stderr io.Writer) int {
	run, ok := processSteps[step]
	if !ok {
		fmt.Fprintln(stderr, "usage: workshop-init tools [--process keep]")
		return 2
	}
	spec, err := process.Read(io.NewSectionReader(specFile{}, 0, math.MaxInt64))
	if err == nil {
		err = run(spec, stdin, stdout)
	}
	if err != nil {
		return fail(stderr, err)
	}
	return 0
}

// specFile reads the descriptor, which all steps have, from its beginning.
type specFile struct{}

func (specFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := unix.Pread(process.SpecFD, b, at)
	if err == nil && n == 0 && len(b) > 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

// keep starts the fence, and ends what is left when the session has ended,
// however it did.
func keep(spec *process.Spec, stdin, stdout *os.File) error {
	children := &reaper.Reaper{}
	down, err := whenRemoved(spec.Up)
	if err != nil {
		return fmt.Errorf("the worker is not up: %w", err)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	descriptors := []uintptr{stdin.Fd(), stdout.Fd(), 2, process.SpecFD, process.ProgramFD}
	for i := range spec.Mounts {
		descriptors = append(descriptors, uintptr(process.MountFD+i))
	}
	child, err := children.Start("/proc/self/exe", []string{"workshop-init", "tools", processFlag, "fence"}, &syscall.ProcAttr{
		Env: os.Environ(), Files: descriptors,
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("a session can't be started: %w", err)
	}
	stdin.Close() // the connection ends with the session
	stdout.Close()
	for ended := false; !ended; {
		select {
		case no := <-signals:
			if no == unix.SIGCHLD {
				children.Reap()
			} else {
				_ = child.Signal(unix.SIGTERM)
			}
		case <-down:
			down = nil
			_ = child.Signal(unix.SIGTERM)
		case <-child.Done():
			ended = true
		}
	}
	if left := children.KillDescendants(endWithin); left > 0 {
		return fmt.Errorf("%d processes of the session can't be killed", left)
	}
	if status := child.Wait(); status.Signaled() || status.ExitStatus() != 0 {
		return errors.New("the session ended by itself")
	}
	return nil
}

// lookEvery is how often a file is looked at where the kernel gives no watch.
const lookEvery = 100 * time.Millisecond

// whenRemoved returns a channel that is closed when a file is removed. Where the kernel gives no
// watch, of which each user has a number, it looks again and again.
func whenRemoved(file string) (<-chan struct{}, error) {
	first, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	removed := make(chan struct{})
	if fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err == nil {
		events := os.NewFile(uintptr(fd), "inotify")
		_, err := unix.InotifyAddWatch(fd, file, unix.IN_DELETE_SELF|unix.IN_MOVE_SELF)
		if err == nil {
			go func() {
				_, _ = events.Read(make([]byte, 4096))
				close(removed)
			}()
			return removed, nil
		}
		events.Close()
	}
	go func() {
		for {
			time.Sleep(lookEvery)
			if now, err := os.Lstat(file); err != nil || !os.SameFile(first, now) {
				close(removed)
				return
			}
		}
	}()
	return removed, nil
}

// fence restricts this thread and executes the program again: then there is no
// other thread.
func fence(spec *process.Spec, _, _ *os.File) error {
	runtime.LockOSThread()
	if spec.Landlock {
		if _, err := landlock.Restrict(rulesOf(spec)); err != nil {
			return fmt.Errorf("the session can't be fenced: %w", err)
		}
	}
	err := syscall.Exec("/proc/self/exe", []string{"workshop-init", "tools", processFlag, "serve"}, spec.Env)
	return fmt.Errorf("the session can't be started inside its fence: %w", err)
}

// rulesOf are the fence's. What is writable below a source, and read-only by a
// mount of its own there, Landlock can't tell: the file tools do.
func rulesOf(spec *process.Spec) landlock.Rules {
	r := landlock.Rules{ReadFDs: []int{process.ProgramFD}, ScopeSockets: true, ScopeSignals: true}
	add := func(list *[]string, p string) {
		if unix.Access(p, unix.F_OK) == nil {
			*list = append(*list, p)
		}
	}
	for _, p := range append([]string{"/proc"}, spec.System...) {
		add(&r.Read, p)
	}
	for _, p := range spec.Devices {
		add(&r.Write, p)
	}
	for i, m := range spec.Mounts {
		if fd := process.MountFD + i; m.ReadOnly {
			r.ReadFDs = append(r.ReadFDs, fd)
		} else {
			r.WriteFDs = append(r.WriteFDs, fd)
		}
	}
	return r
}

// serveFenced is the session. Its environment is the worker's by now.
func serveFenced(spec *process.Spec, stdin, stdout *os.File) error {
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	mounts := make([]files.Mount, 0, len(spec.Mounts))
	for i, m := range spec.Mounts {
		mounts = append(mounts, files.Mount{Target: m.Target, Source: m.Source, ReadOnly: m.ReadOnly, Handle: process.MountFD + i})
	}
	view, err := files.Use(spec.Workdir, mounts)
	if err != nil {
		return err
	}
	dir, err := view.Directory(spec.Workdir)
	if err != nil {
		return fmt.Errorf("the working directory: %w", err)
	}
	defer dir.Close()
	if err := unix.Fchdir(int(dir.Fd())); err != nil {
		return fmt.Errorf("the working directory: %w", err)
	}
	s, err := newSession(spec.Grant)
	if err != nil {
		return err
	}
	s.view, s.workdir, s.instance = view, spec.Workdir, spec.Instance
	if s.dial, err = policyDialer(spec.Policy); err != nil {
		return err
	}
	return s.run(stdin, stdout)
}
