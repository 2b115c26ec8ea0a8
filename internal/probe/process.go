//go:build linux

package probe

import (
	"fmt"
	"io"
	"os"
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

func environ(args) (string, string) {
	var names []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ","), ""
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

// start starts a program without input; its output goes to out, if that isn't nil.
// os/exec would do more, but link 60 kB.
func start(out *os.File, flags uintptr, argv ...string) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	if out == nil {
		out = null
	}
	return syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{null.Fd(), out.Fd(), out.Fd()}, Sys: &syscall.SysProcAttr{Cloneflags: flags},
	})
}

// ran starts a program and waits for its end and EOF of its output.
func ran(flags uintptr, argv ...string) (string, string) {
	r, w, err := os.Pipe()
	if err != nil {
		return seenOf(err)
	}
	defer r.Close()
	pid, err := start(w, flags, argv...)
	w.Close()
	if err != nil {
		return seenOf(err)
	}
	out, readErr := io.ReadAll(r)
	end, err := wait(pid)
	switch {
	case err != nil:
		return seenOf(err)
	case readErr != nil:
		return seenOf(readErr)
	case end.Signaled():
		return "killed", end.Signal().String()
	}
	return "exit " + strconv.Itoa(end.ExitStatus()), text(out)
}

func wait(pid int) (end unix.WaitStatus, err error) {
	for {
		if _, err = unix.Wait4(pid, &end, 0, nil); err != unix.EINTR {
			return end, err
		}
	}
}

func execute(a args) (string, string) { return ran(0, a.pos...) }

// namespace starts a child in a new namespace: the first step of most escapes.
func namespace(a args) (string, string) {
	flag, ok := map[string]uintptr{"user": unix.CLONE_NEWUSER, "net": unix.CLONE_NEWNET, "mnt": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID}[a.pos[0]]
	if !ok {
		return "ERROR", "user, net, mnt or pid"
	}
	return worked(ran(flag, child("true")...))
}

// worked returns "ok" for a child that exited with 0.
func worked(seen, detail string) (string, string) {
	if seen == "exit 0" {
		return "ok", ""
	}
	return seen, detail
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
	return worked(ran(0, child("memory", strconv.FormatInt(size, 10))...))
}

func processes(a args) (string, string) {
	n, err := strconv.Atoi(a.pos[0])
	if err != nil {
		return "ERROR", err.Error()
	}
	var running []int
	defer func() {
		for _, pid := range running {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = wait(pid)
		}
	}()
	for range n {
		pid, err := start(nil, 0, child("wait")...)
		if err != nil {
			seen, _ := seenOf(err)
			return seen, fmt.Sprintf("after %d children", len(running))
		}
		running = append(running, pid)
	}
	return "ok", ""
}

// childCommand marks this program's own children.
const childCommand = "-child"

// child runs this program again, for tries that must not run in this process.
func child(args ...string) []string {
	return append([]string{"/proc/self/exe", "probe", childCommand}, args...)
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
			b[i] = 1 // allocates each page
		}
	case "wait":
		time.Sleep(time.Minute)
	}
	return 0
}
