//go:build linux

package scenario

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// changers are the system calls by which a program changes something outside of
// itself: files, processes, and by a socket's write an engine.
const changers = "write,pwrite64,sendto,sendmsg,connect,flock,clone,clone3,mkdirat,renameat,renameat2,unlinkat,linkat,symlinkat,fchmodat,fchownat,ftruncate"

// KilledAfter runs workshop and kills it after its nth system call that changes
// something outside of it; 0: never. It returns how many it made. What it has
// asked an engine for, and a supervisor that it has started, go on.
func (s *Scenario) KilledAfter(n int, args ...string) (calls int) {
	s.Helper()
	fifo := filepath.Join(s.TempDir(), "calls")
	s.must(syscall.Mkfifo(fifo, 0o600))
	s.Give(fifo)
	trace, err := os.OpenFile(fifo, os.O_RDWR, 0)
	s.must(err)
	defer trace.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	// A child leaves the trace when it becomes another program.
	cmd := s.Program(ctx, "strace", append([]string{"-f", "-q", "-y", "--detach-on=execve", "-s", "0", "-e", "trace=" + changers, "-e", "signal=none", "-o", fifo, "--", s.Workshop()}, args...)...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	s.must(cmd.Start())
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		_ = trace.SetReadDeadline(time.Now()) // what was written before is read
	}()
	killed := false
	for lines := bufio.NewScanner(trace); lines.Scan(); {
		if line := lines.Text(); !isChange(line) {
			continue
		}
		if calls++; calls == n {
			killed = killChild(cmd.Process.Pid)
		}
	}
	if err := <-ended; err != nil && !killed {
		s.Fatalf("workshop %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return calls
}

// isChange leaves out what a program says to itself, or prints.
func isChange(line string) bool {
	call, args, ok := strings.Cut(line, "(")
	if !ok || strings.Contains(call, "<...") {
		return false
	}
	return !strings.Contains(args, "<anon_inode:") && !strings.Contains(args, "<pipe:") && !strings.Contains(args, "</dev/")
}

// killChild kills the program that a strace runs; false where it has ended.
func killChild(strace int) bool {
	list, err := os.ReadFile("/proc/" + strconv.Itoa(strace) + "/task/" + strconv.Itoa(strace) + "/children")
	if err != nil {
		return false
	}
	child, _, _ := strings.Cut(string(list), " ")
	pid, err := strconv.Atoi(child)
	return err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil
}
