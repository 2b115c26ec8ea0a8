//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/docker/go-units"
	"golang.org/x/sys/unix"
)

func status(a args) (string, string) {
	b, err := os.ReadFile("/proc/" + a.at(1, "self") + "/status")
	if err != nil {
		return seenOf(err)
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && k == a.pos[0] {
			return strings.Join(strings.Fields(v), " "), ""
		}
	}
	return "none", ""
}

func env(a args) (string, string) {
	if v, ok := os.LookupEnv(a.pos[0]); ok {
		return v, ""
	}
	return "unset", ""
}

func uid(args) (string, string) {
	groups, err := os.Getgroups()
	if err != nil {
		return seenOf(err)
	}
	slices.Sort(groups)
	var more []string
	for _, g := range groups {
		if g != os.Getgid() {
			more = append(more, strconv.Itoa(g))
		}
	}
	out := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	if len(more) > 0 {
		out += " +" + strings.Join(more, ",")
	}
	return out, ""
}

// ended turns the end of a child into what is reported.
func ended(err error, out []byte) (string, string) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err != nil {
			return seenOf(err)
		}
		return "exit 0", text(out)
	}
	if exit.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		return "killed", exit.String()
	}
	return "exit " + strconv.Itoa(exit.ExitCode()), text(out)
}

func execute(a args) (string, string) {
	out, err := exec.Command(a.pos[0], a.pos[1:]...).CombinedOutput()
	return ended(err, out)
}

// namespace starts a child in a new namespace: the first step of most escapes.
func namespace(a args) (string, string) {
	flag, ok := map[string]uintptr{"user": unix.CLONE_NEWUSER, "net": unix.CLONE_NEWNET, "mnt": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID}[a.pos[0]]
	if !ok {
		return "ERROR", "user, net, mnt or pid"
	}
	c := child("true")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flag}
	return seenOf(c.Run())
}

func signal(a args) (string, string) {
	pid, err := strconv.Atoi(a.pos[1])
	sig := unix.SignalNum(strings.ToUpper(a.pos[0]))
	if err != nil || sig == 0 && a.pos[0] != "0" {
		return "ERROR", "usage: signal SIGTERM PID"
	}
	return seenOf(unix.Kill(pid, sig))
}

func memory(a args) (string, string) {
	size, err := units.RAMInBytes(a.pos[0])
	if err != nil {
		return "ERROR", err.Error()
	}
	out, err := child("memory", strconv.FormatInt(size, 10)).CombinedOutput()
	if seen, detail := ended(err, out); seen != "exit 0" {
		return seen, detail
	}
	return "ok", ""
}

func processes(a args) (string, string) {
	n, err := strconv.Atoi(a.pos[0])
	if err != nil {
		return "ERROR", err.Error()
	}
	var running []*exec.Cmd
	defer func() {
		for _, c := range running {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}()
	for range n {
		c := child("wait")
		if err := c.Start(); err != nil {
			seen, _ := seenOf(err)
			return seen, fmt.Sprintf("after %d children", len(running))
		}
		running = append(running, c)
	}
	return "ok", ""
}

// childCommand marks this program's own children.
const childCommand = "-child"

// child is this program again, for what must not happen in this process.
func child(args ...string) *exec.Cmd {
	return exec.Command("/proc/self/exe", append([]string{"probe", childCommand}, args...)...)
}

func childMain(args []string) int {
	switch args[0] {
	case "memory":
		size, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return 2
		}
		b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return 1
		}
		for i := 0; i < len(b); i += os.Getpagesize() {
			b[i] = 1 // each page must really exist
		}
	case "wait":
		time.Sleep(time.Minute)
	}
	return 0
}
