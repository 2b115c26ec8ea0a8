package seccomp

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const asChild = "WORKSHOP_TEST_SECCOMP"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		child()
		return
	}
	os.Exit(m.Run())
}

// child restricts itself, and says what it still can do.
func child() {
	files := make(chan func() error)
	done := make(chan error)
	go func() { // a thread that was there before
		runtime.LockOSThread()
		for f := range files {
			done <- f()
		}
	}()
	var st unix.Stat_t
	if err := Allow(unix.SYS_FSTAT); err != nil {
		fmt.Println("allow:", err)
		os.Exit(1)
	}
	for _, x := range []struct {
		name string
		call func() error
	}{
		{"fstat", func() error { return unix.Fstat(0, &st) }},
		{"socket", func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err }},
		{"unix socket", func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err }},
		{"connect", func() error { return unix.Connect(0, &unix.SockaddrInet4{}) }},
		{"open", func() error { _, err := unix.Open("/", 0, 0); return err }},
		{"execute", func() error { return unix.Exec("/bin/true", nil, nil) }},
		{"fork", func() error {
			if pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0); errno != 0 {
				return errno
			} else if pid == 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			return nil
		}},
		{"trace", func() error { return unix.PtraceAttach(os.Getppid()) }},
	} {
		fmt.Println(x.name, x.call())
		files <- x.call
		fmt.Println(x.name, <-done)
	}
	// Go goes on: threads, memory, timers.
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			runtime.LockOSThread() // and ends with its thread
			_ = make([]byte, 1<<20)
			time.Sleep(10 * time.Millisecond)
		})
	}
	wait.Wait()
	runtime.GC()
	fmt.Println("end <nil>")
}

// TestAllow: of all threads, what isn't allowed fails, and Go works.
func TestAllow(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), asChild+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := map[string]string{"fstat": "<nil>", "end": "<nil>"}
	lines := 0
	for line := range strings.Lines(string(out)) {
		name, got, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "unix" {
			_, got, _ = strings.Cut(got, " ")
		}
		if w := want[name]; w == "" && got != "operation not permitted" || w != "" && got != w {
			t.Errorf("%s: %s", name, got)
		}
		lines++
	}
	if lines != 17 {
		t.Errorf("%d lines:\n%s", lines, out)
	}
}

func TestTooMany(t *testing.T) {
	if err := Allow(make([]uintptr, maxCalls)...); err == nil {
		t.Error("no error")
	}
}
