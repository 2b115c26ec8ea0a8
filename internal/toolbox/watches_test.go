//go:build linux

package toolbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// takeWatches takes all instances of inotify that its user may have, until its
// input ends.
func takeWatches() {
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 4096, Max: 4096})
	for n := 0; ; n++ {
		if _, err := unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
			if n > 4000 || !errors.Is(err, unix.EMFILE) {
				fmt.Println("FAILED", n, err)
				os.Exit(1)
			}
			break
		}
	}
	fmt.Println("taken")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// TestWithoutWatches: B60: a worker that took all instances of inotify of its user
// doesn't keep another one of that user from its tools.
func TestWithoutWatches(t *testing.T) {
	initProgram(t) // requires root's namespaces as the others do
	taker := exec.Command("/proc/self/exe", "take-watches")
	taker.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: worker, Gid: worker}}
	in, err := taker.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := taker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := taker.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); taker.Wait() }()
	if line, err := io.ReadAll(io.LimitReader(out, int64(len("taken\n")))); string(line) != "taken\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	r := open(t, everything())
	for range 3 {
		c := r.session(RoleTools)
		defer c.Close() // not sooner: a session that ends has the door looked at
		if got := c.shell("echo ok"); got.Stdout.Text != "ok\n" {
			t.Errorf("got %+v", got)
		}
	}
}

// TestWhenRemovedWithoutWatches: a session of process mode ends with its worker,
// where the kernel gives no watch too.
func TestWhenRemovedWithoutWatches(t *testing.T) {
	file := filepath.Join(t.TempDir(), "up")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	// No descriptor, no instance.
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	removed, err := whenRemoved(file)
	if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); e != nil {
		t.Fatal(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	select {
	case <-removed:
	case <-time.After(10 * time.Second):
		t.Error("the end isn't seen")
	}
}
