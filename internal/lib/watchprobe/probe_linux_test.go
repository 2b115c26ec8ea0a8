package watchprobe

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stage says what the test program is: first it takes the watches from itself,
// by a filter of system calls, then it begins anew and is probed.
const stage = "WATCHPROBE_STAGE"

func TestMain(m *testing.M) {
	switch os.Getenv(stage) {
	case "filter":
		runtime.LockOSThread()
		os.Setenv(stage, "begin")
		if err := withoutWatches(); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(99)
		}
		err := unix.Exec("/proc/self/exe", os.Args, os.Environ())
		os.Stderr.WriteString(err.Error())
		os.Exit(99)
	case "begin":
		os.Stdout.WriteString("began")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// withoutWatches makes epoll_ctl fail as it does when the uid has no watches
// left, for whatever this thread runs from now on.
func withoutWatches() error {
	code := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_EPOLL_CTL},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSPC)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// B60: a worker that holds all watches of its uid makes a host command say so,
// and not fail with a trace of Go's runtime.
func TestNoWatches(t *testing.T) {
	for at, want := range map[string]string{"filter": "pgrep", "begin": ""} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), stage+"="+at)
		out, err := cmd.CombinedOutput()
		var ended *exec.ExitError
		switch {
		case want == "" && (err != nil || string(out) != "began"):
			t.Errorf("control: %v\n%s", err, out)
		case want != "" && (!errors.As(err, &ended) || ended.ExitCode() != exitCode || !strings.Contains(string(out), want) || strings.Contains(string(out), "goroutine")):
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// A program that may open no file is told so too.
func TestNoFiles(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `ulimit -n 3; exec "$0"`, "/proc/self/exe")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args[3] = self
	cmd.Env = append(os.Environ(), stage+"=begin")
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != exitCode || !strings.Contains(string(out), "ulimit -n") {
		t.Errorf("%v\n%s", err, out)
	}
}
