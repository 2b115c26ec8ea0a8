//go:build linux

package container

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
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
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/seccomp"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/reaper"
)

// The test binary is everything here: the supervisor (PID 1 of its own
// namespaces, as root, and as an ordinary user in a user namespace of one id),
// the stage, and, bound at /inside, the program in the container.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "contain":
			if without := os.Getenv("WITHOUT"); without != "" {
				for name := range strings.SplitSeq(without, ",") {
					dropStep(name)
				}
			}
			if os.Getenv("SPLIT") != "" {
				timeSteps()
			}
			os.Exit(Main(os.Args[2:], os.Stdout, os.Stderr))
		case "supervise":
			os.Exit(supervise())
		case "launch":
			os.Exit(launch())
		case "inside":
			os.Exit(inside(os.Args[2:]))
		}
	}
	code := m.Run()
	if copied != "" {
		os.RemoveAll(filepath.Dir(copied))
	}
	os.Exit(code)
}

// dropStep takes a fence away, for the tests that show that it is the one that
// holds.
func dropStep(name string) {
	for i, s := range steps {
		if s.name == name {
			steps[i].do = func(*stage) error { return nil }
			return
		}
	}
	panic("no step " + name)
}

// timeSteps prints on stderr how long each step takes, and what came before.
func timeSteps() {
	nanos, _ := strconv.ParseInt(os.Getenv("SPLIT"), 10, 64)
	begin := time.Unix(0, nanos)
	split = append(split, fmt.Sprintf("main %.3f", float64(time.Since(begin))/1e6))
	for i, s := range steps {
		steps[i].do = func(stage *stage) error {
			at := time.Now()
			if i == 0 {
				split = append(split, fmt.Sprintf("order read at %.3f", float64(time.Since(begin))/1e6))
			}
			err := s.do(stage)
			split = append(split, fmt.Sprintf("%s %.3f", s.name, float64(time.Since(at))/1e6))
			if i == len(steps)-2 {
				fmt.Fprintf(os.Stderr, "all %.3f\n%s\n", float64(time.Since(begin))/1e6, strings.Join(split, "\n"))
			}
			return err
		}
	}
}

var split []string

// binary is the test binary where an ordinary user can execute it.
var binary = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "contain")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile("/proc/self/exe")
	}
	p := filepath.Join(dir, "inside")
	if err == nil {
		err = os.WriteFile(p, b, 0o755)
	}
	if err != nil {
		panic(err)
	}
	copied = p
	return p
})

var copied string // binary, once it is there

const userID = 1000 // of the ordinary user

// modes are as whom the supervisor runs.
func modes() []string {
	if os.Getuid() == 0 {
		return []string{"root", "user"}
	}
	return []string{"user"}
}

func eachMode(t *testing.T, f func(t *testing.T, mode string)) {
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f(t, mode)
		})
	}
}

// ids of a worker in this mode.
func ids(mode string) (uint32, uint32) {
	if os.Getuid() != 0 {
		return uint32(os.Getuid()), uint32(os.Getgid())
	}
	return userID, userID
}

var filter = sync.OnceValue(func() []byte {
	b, err := seccomp.Filter(compose.SeccompProfile(), runtime.GOARCH)
	if err != nil {
		panic(err)
	}
	return b
})

// container that executes a function of this binary.
func container(mode string, args ...string) *spec.Container {
	uid, gid := ids(mode)
	c := &spec.Container{
		Version: spec.Version, Name: "test-worker-1", Service: "worker", Role: spec.Worker,
		Process:  spec.Process{Args: append([]string{"/inside", "inside"}, args...), Env: []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}, Cwd: "/", UID: uid, GID: gid},
		Mounts:   []spec.Mount{{Type: spec.Bind, Source: binary(), Target: "/inside", ReadOnly: true}},
		Hostname: "workshop", Network: spec.Network{Mode: spec.NetNone},
		Limits: spec.Limits{Unlimited: true, Shm: 1 << 20}, Seccomp: filter(), Landlock: true,
	}
	for _, dir := range []string{"/lib", "/lib64", "/usr"} { // a binary with -race needs them
		if _, err := os.Lstat(dir); err == nil {
			if source, err := filepath.EvalSymlinks(dir); err == nil {
				c.Mounts = append(c.Mounts, spec.Mount{Type: spec.Bind, Source: source, Target: dir, ReadOnly: true, Recursive: true})
			}
		}
	}
	return c
}

// job is what a test lets its supervisor do.
type job struct {
	Spec *spec.Container
	// Room is started first; the container joins its network.
	Room *spec.Container
	// Files are contents of pipes that the program inherits.
	Files []string
	// NoCgroup: the group refuses it.
	NoCgroup bool
	Group    bool // a real one, with limits
	// KillAfter ends the program.
	KillAfter time.Duration
	Without   string // a fence that isn't put up
	Split     bool
	// NoNetfilter is a kernel without it.
	NoNetfilter bool
	Leak        bool // the supervisor has descriptors that every child inherits
	// Bench is how often; Program is workshop-init.
	Bench   int
	Program string
}

// result of a container.
type result struct {
	Err  string
	Out  string
	Exit int
}

func run(t testing.TB, mode string, j job) result {
	t.Helper()
	in, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := supervisor(mode)
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if j.Split || stderr.Len() > 0 {
		t.Logf("%s", stderr.Bytes())
	}
	var r result
	if jerr := json.Unmarshal(out, &r); jerr != nil {
		t.Fatalf("the supervisor: %v, %v\n%s%s", err, jerr, out, stderr.Bytes())
	}
	return r
}

// supervisor prepares one.
func supervisor(mode string) *exec.Cmd {
	if mode == "root" {
		cmd := exec.Command(binary(), "supervise")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID}
		return cmd
	}
	cmd := exec.Command(binary(), "launch")
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: userID, Gid: userID}}
	}
	return cmd
}

// launch starts a supervisor as the CLI does for an ordinary user.
func launch() int {
	cmd := exec.Command(binaryOfSelf(), "supervise")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var caps []uintptr
	for n := range uintptr(41) {
		caps = append(caps, n)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		GidMappingsEnableSetgroups: false,
		AmbientCaps:                caps,
	}
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func binaryOfSelf() string {
	p, err := os.Readlink("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	return p
}

// supervise does one job and prints its result.
func supervise() int {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if j.Bench > 0 {
		return benchResult(j)
	}
	runtime.LockOSThread() // the keyring is the thread's
	if j.NoNetfilter {
		if err := testutil.WithoutNetfilter(); err != nil {
			panic(err)
		}
	}
	children := newReaper()
	var r result
	if j.Leak {
		if _, err := unix.KeyctlJoinSessionKeyring(fmt.Sprint(keyName, os.Getuid())); err != nil {
			panic(err)
		}
		if _, err := unix.AddKey("user", keyName, []byte("x"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
			panic(err)
		}
		if _, err := unix.Open("/etc", unix.O_RDONLY|unix.O_DIRECTORY, 0); err != nil { // without O_CLOEXEC
			panic(err)
		}
	}
	stdout, in, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	at := time.Now()
	o := Options{Stdout: in, Stderr: in, PidFD: new(int)}
	var moved []int
	o.Cgroup = func(pid int) error {
		moved = append(moved, pid)
		if j.NoCgroup {
			return errors.New("no room in the group")
		}
		return nil
	}
	for _, text := range j.Files {
		r, w, err := os.Pipe()
		if err != nil {
			panic(err)
		}
		_, _ = w.WriteString(text)
		w.Close()
		o.Files = append(o.Files, r)
	}
	if j.Room != nil {
		room, err := Start(children, binaryOfSelf(), j.Room, Options{})
		if err != nil {
			panic(err)
		}
		if o.NetNS, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", hostPid(room.Pid))); err != nil {
			panic(err)
		}
	}
	if j.Group {
		parent, err := cgroup.Find()
		if err == nil {
			err = parent.Prepare()
		}
		if err != nil {
			panic(err)
		}
		group, err := parent.New(fmt.Sprintf("contain-test-%d", hostPid(os.Getpid())), cgroup.Limit{MemoryBytes: groupMemory, CPUs: 1, PIDs: 16})
		if err != nil {
			panic(err)
		}
		defer group.Remove()
		add := o.Cgroup
		o.Cgroup = func(pid int) error { return errors.Join(add(pid), group.Add(pid)) }
		for _, m := range group.Mounts() {
			o.CgroupMounts = append(o.CgroupMounts, CgroupMount(m))
		}
	}
	p, err := Start(withoutFence{children, j.Without, j.Split}, binaryOfSelf(), j.Spec, o)
	if len(moved) != 1 || err == nil && moved[0] != p.Pid || (err == nil) != (*o.PidFD >= 0) {
		fmt.Fprintln(os.Stderr, "in the group:", moved, "pidfd", *o.PidFD)
		os.Exit(1)
	}
	in.Close()
	if j.Split {
		fmt.Fprintf(os.Stderr, "executed %.3f\n", float64(time.Since(at))/1e6)
	}
	if err != nil {
		r.Err = err.Error()
	} else {
		if j.KillAfter > 0 {
			time.AfterFunc(j.KillAfter, func() { _ = p.Signal(unix.SIGKILL) })
		}
		out, _ := io.ReadAll(stdout)
		status := p.Wait()
		r.Out, r.Exit = string(out), status.ExitStatus()
		if status.Signaled() {
			r.Exit = 128 + int(status.Signal())
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
	return 0
}

// hostPid is the number of a child in /proc, which is the machine's here.
func hostPid(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		panic(err)
	}
	defer unix.Close(fd)
	b, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	for line := range strings.Lines(string(b)) {
		var n int
		if _, err := fmt.Sscanf(line, "Pid: %d", &n); err == nil {
			return n
		}
	}
	panic(string(b))
}

func newReaper() *reaper.Reaper {
	children := &reaper.Reaper{}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			children.Reap()
		}
	}()
	return children
}

// withoutFence tells the stage of a test what to leave out.
type withoutFence struct {
	*reaper.Reaper
	fence string
	split bool
}

func (w withoutFence) Start(path string, argv []string, attr *syscall.ProcAttr) (*reaper.Process, error) {
	if w.fence != "" {
		attr.Env = append(attr.Env, "WITHOUT="+w.fence)
	}
	if w.split {
		attr.Env = append(attr.Env, "SPLIT="+strconv.FormatInt(time.Now().UnixNano(), 10))
	}
	return w.Reaper.Start(path, argv, attr)
}

// groupMemory is a room's (B5).
var groupMemory int64 = 16 << 20

// insides are what a container's program can do, by name.
var insides = map[string]func(args []string){}

func inside(args []string) int {
	f := insides[args[0]]
	if f == nil {
		fmt.Println("no inside", args)
		return 99
	}
	f(args[1:])
	return 0
}

func lines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }
