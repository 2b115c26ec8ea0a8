//go:build linux

package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/seccomp"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/logfile"
)

// The tests run the real workshop-init, started as the CLI starts it, as root
// and as an ordinary user, with shells of the machine in real containers.
const userID = 1000

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		os.Exit(launch(os.Args[2], os.Args[3]))
	}
	if len(os.Args) > 1 && os.Args[1] == "launch with" {
		os.Exit(launchWith(os.Args[2], os.Args[3], os.Args[4]))
	}
	code := m.Run()
	if scratch != "" {
		os.RemoveAll(scratch)
	}
	os.Exit(code)
}

// digest is what supervisors are told of their program, in place of a SHA-256.
var digest = strings.Repeat("ab", 32)

// launch starts a supervisor, prints its number on descriptor 3 and ends.
func launch(program, dir string) int {
	cmd := apart(unix.CLONE_NEWPID, program, "supervise", "--dir", dir, "--digest", digest)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.NewFile(3, "pid"), cmd.Process.Pid)
	return 0
}

// launchWith is launch on a machine that has another /etc.
func launchWith(etc, program, dir string) int {
	const second = "ETC_IS_READY"
	err := error(nil)
	if os.Getenv(second) != "" {
		if err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err == nil { // or it were everybody's
			err = unix.Mount(etc, "/etc", "", unix.MS_BIND, "")
		}
		if err == nil {
			return launch(program, dir)
		}
	} else {
		cmd := apart(0, "/proc/self/exe", os.Args[1:]...)
		cmd.Env = append(os.Environ(), second+"=1")
		cmd.ExtraFiles = []*os.File{os.NewFile(3, "pid")}
		if err = cmd.Run(); err == nil {
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// apart is a program in a mount namespace of its own, with all capabilities
// there.
func apart(flags uintptr, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	a := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | flags, Setsid: true}
	if os.Getuid() != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		for n := range uintptr(41) {
			a.AmbientCaps = append(a.AmbientCaps, n)
		}
	}
	cmd.SysProcAttr = a
	return cmd
}

var scratch string

// binaries are workshop-init and this test, where an ordinary user can execute
// them.
var binaries = sync.OnceValues(func() (initBinary, launcher string) {
	if p := os.Getenv(programVariable); p != "" {
		return p, "/proc/self/exe"
	}
	var err error
	check := func(e error) {
		if e != nil {
			panic(e)
		}
	}
	scratch, err = os.MkdirTemp("", "supervisor")
	check(err)
	check(os.Chmod(scratch, 0o755))
	initBinary, launcher = scratch+"/workshop-init", scratch+"/launcher"
	build := exec.Command("go", "build", "-o", initBinary, "./testdata/init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	check(os.Chmod(initBinary, 0o111))
	b, err := os.ReadFile("/proc/self/exe")
	check(err)
	check(os.WriteFile(launcher, b, 0o755))
	if os.Getuid() == 0 {
		check(os.Mkdir(scratch+"/tmp", 0o700))
		check(os.Chown(scratch+"/tmp", userID, userID))
		check(os.Chown(initBinary, userID, userID))
	}
	return initBinary, launcher
})

// world is a state directory and its supervisor.
type world struct {
	testing.TB
	*client.Client
	mode  string // root or user
	dir   string
	etc   string   // of the machine; empty: this one's
	pid   int      // of the supervisor, here
	pipe  string   // what its caller left open, as /proc names it
	pidfd *os.File // of it
}

func eachMode(t *testing.T, f func(t *testing.T, w *world)) {
	for _, mode := range []string{"root", "user"} {
		if mode == "root" && os.Getuid() != 0 {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			if mode == "user" && os.Getuid() == 0 {
				asUser(t)
				return
			}
			w := newWorld(t, mode)
			w.start()
			f(t, w)
		})
	}
}

// asUser runs a test in a process of an ordinary user.
func asUser(t *testing.T) {
	program, launcher := binaries()
	cmd := exec.Command(launcher, "-test.v", "-test.timeout", "2m", "-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "TMPDIR=" + filepath.Dir(program) + "/tmp", programVariable + "=" + program}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: userID, Gid: userID}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("it did not run:\n%s", out)
	} else {
		t.Logf("%s", out)
	}
}

// programVariable names the program to supervise with, which an ordinary user
// can't build.
const programVariable = "WORKSHOP_TEST_INIT"

func newWorld(t testing.TB, mode string) *world {
	base, err := os.MkdirTemp("", "state")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, mode: mode, dir: base + "/project"}
	t.Cleanup(func() {
		w.kill()
		if t.Failed() {
			b, _ := os.ReadFile(w.dir + "/" + api.ErrorsName)
			t.Logf("supervisor.log: %s", b)
		}
		os.RemoveAll(base)
	})
	if err := errors.Join(os.Chmod(base, 0o755), os.Mkdir(w.dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	return w
}

// ids of a worker.
func (w *world) ids() (uint32, uint32) {
	if os.Getuid() != 0 {
		return uint32(os.Getuid()), uint32(os.Getgid())
	}
	return userID, userID
}

// begin starts a supervisor and returns its line.
func (w *world) begin() (line string, pid int, pidfd *os.File) {
	w.Helper()
	program, launcher := binaries()
	errs, err := os.OpenFile(w.dir+"/"+api.ErrorsName, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	defer errs.Close()
	out, in, _ := os.Pipe()
	number, numberIn, _ := os.Pipe()
	if w.pipe, err = os.Readlink("/proc/self/fd/" + itoa(int(numberIn.Fd()))); err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command(launcher, "launch", program, w.dir)
	if w.etc != "" {
		cmd = exec.Command(launcher, "launch with", w.etc, program, w.dir)
	}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, errs, []*os.File{numberIn}
	err = cmd.Run()
	in.Close()
	numberIn.Close()
	if err != nil {
		w.Fatal(err)
	}
	fmt.Fscan(number, &pid)
	number.Close()
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		pidfd = os.NewFile(uintptr(fd), "pidfd")
	}
	all, err := io.ReadAll(out) // it closes stdout
	out.Close()
	if err != nil {
		w.Fatal(err)
	}
	return string(all), pid, pidfd
}

func (w *world) start() {
	w.Helper()
	w.pidfd = nil
	line, pid, pidfd := w.begin()
	if line != "READY\n" {
		b, _ := os.ReadFile(w.dir + "/" + api.ErrorsName)
		w.Fatalf("the supervisor says %q\n%s", line, b)
	}
	w.pid, w.pidfd = pid, pidfd
	c, err := client.Dial(w.Context(), w.dir)
	if err != nil {
		w.Fatal(err)
	}
	w.Client = c
}

// kill ends the supervisor as kill -9 does, and waits.
func (w *world) kill() {
	if w.pidfd == nil {
		return
	}
	_ = unix.PidfdSendSignal(int(w.pidfd.Fd()), unix.SIGKILL, nil, 0)
	if !over(w.pidfd, 10*time.Second) {
		w.Error("the supervisor doesn't die")
	}
	w.pidfd.Close()
	w.pidfd = nil
}

// over reports whether the process of a pidfd has ended.
func over(pidfd *os.File, within time.Duration) bool {
	p := []unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}}
	for end := time.Now().Add(within); ; {
		n, err := unix.Poll(p, int(max(0, time.Until(end).Milliseconds())))
		if n > 0 {
			return true
		}
		if err != unix.EINTR && !time.Now().Before(end) {
			return false
		}
	}
}

var filter = sync.OnceValue(func() []byte {
	b, err := seccomp.Filter(compose.SeccompProfile(), runtime.GOARCH)
	if err != nil {
		panic(err)
	}
	return b
})

// shell is a worker that runs a script.
func (w *world) shell(service, script string) *spec.Container {
	uid, gid := w.ids()
	c := &spec.Container{
		Version: spec.Version, Name: "test-" + service + "-1", Service: service, Role: spec.Worker,
		Process:  spec.Process{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Cwd: "/", UID: uid, GID: gid},
		Hostname: "workshop", Network: spec.Network{Mode: spec.NetNone},
		Limits: spec.Limits{Unlimited: true, Shm: 1 << 20}, Seccomp: filter(), Landlock: true,
		Grace: 5 * time.Second, Log: spec.Log{MaxSize: 1 << 20, MaxFiles: 3},
	}
	if w.mode == "root" { // limits can be enforced here
		c.Limits = spec.Limits{Memory: 64 << 20, CPUs: 1, PIDs: 64, Shm: 1 << 20}
	}
	for _, dir := range []string{"/bin", "/lib", "/lib64", "/usr"} {
		if source, err := filepath.EvalSymlinks(dir); err == nil {
			c.Mounts = append(c.Mounts, spec.Mount{Type: spec.Bind, Source: source, Target: dir, ReadOnly: true, Recursive: true})
		}
	}
	return c
}

// sleeper is ready and stays.
const sleeper = "trap 'exit 0' TERM; echo READY; while :; do sleep 1000 & wait; done"

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) run(c *spec.Container) {
	w.Helper()
	w.must(w.Create(w.Context(), c))
	w.must(w.Start(w.Context(), c.Service))
}

func (w *world) up(c *spec.Container) {
	w.Helper()
	w.run(c)
	if r, err := w.Ready(w.Context(), c.Service); err != nil || !r.Ready {
		w.Fatalf("%s: %+v, %v", c.Service, r, err)
	}
}

func (w *world) seen(service string) api.Seen {
	w.Helper()
	list, err := w.List(w.Context())
	w.must(err)
	for _, s := range list {
		if s.Container.Service == service {
			return s
		}
	}
	return api.Seen{}
}

func (w *world) log(service string) string {
	var b strings.Builder
	err := logfile.Read(context.Background(), w.dir+"/log/"+service, logfile.Options{Tail: logfile.All}, func(e logfile.Entry) error {
		b.WriteString(e.Text)
		return nil
	})
	if err != nil {
		w.Error(err)
	}
	return b.String()
}

// raw sends bytes and returns the lines that come.
func (w *world) raw(request string) []api.Answer {
	w.Helper()
	c, err := client.Connect(w.Context(), w.dir)
	w.must(err)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = c.Write([]byte(request))
	_ = c.CloseWrite()
	var list []api.Answer
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return list
		}
		var a api.Answer
		if err := json.Unmarshal(bytes.TrimSpace(line), &a); err != nil {
			w.Fatalf("%q: %v", line, err)
		}
		list = append(list, a)
	}
}

func code(err error) api.Code {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func itoa(n int) string { return strconv.Itoa(n) }

func pidfdOpen(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// groups lists the control groups that this supervisor has made.
func (w *world) groups() (list []string) {
	prefix := groupPrefix(w.dir)
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), prefix) {
			list = append(list, path)
		}
		return nil
	})
	return list
}
