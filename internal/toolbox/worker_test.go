//go:build linux

package toolbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/internal/workerinit"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
	"github.com/llmdo/workshop/tool"
)

// The test binary is also what workshop-init is in a worker, and what sets a
// worker up.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "set-up": // PID 1 as root
			fmt.Println("FAILED set up:", setUp(os.Args[2]))
			os.Exit(1)
		case "gate":
			os.Exit(workerinit.Main(os.Args[2:], os.Stdout, os.Stderr))
		case "take-watches":
			takeWatches()
		case "enter":
			os.Exit(EnterMain(os.Args[2:], os.Stdout, os.Stderr))
		case "tools":
			if slices.Contains(os.Environ(), byName) {
				peerOf = func(int) (int, error) { return -1, unix.ENOTTY }
			}
			scratchDir, _ = os.Getwd()
			os.Exit(Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		}
	}
	code := m.Run()
	if initFile != "" {
		// Sessions have no place for a report of the race detector but these.
		races, _ := filepath.Glob(filepath.Join(filepath.Dir(initFile), "races", "*"))
		for _, file := range races {
			b, _ := os.ReadFile(file)
			os.Stderr.Write(b)
			code = 1
		}
		os.RemoveAll(filepath.Dir(initFile))
	}
	os.Exit(code)
}

const worker = 64201 // a uid that nobody has, so that its limit of processes counts ours alone

// initFile is a copy of the test binary that a worker can execute, but not read:
// as on the volume of tools.
var initFile string

var initMode os.FileMode = 0o111

func initProgram(t testing.TB) string {
	t.Helper()
	if initFile != "" {
		return initFile
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	dir, err := os.MkdirTemp("", "ws-toolbox")
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o755)
	os.Mkdir(filepath.Join(dir, "races"), 0o700)
	os.Chown(filepath.Join(dir, "races"), worker, worker)
	name := filepath.Join(dir, "workshop-init")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, initMode)
	if err == nil {
		_, err = io.Copy(f, self)
		err = errors.Join(err, f.Chmod(initMode), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	initFile = name
	return name
}

// setting is how a worker is made.
type setting struct {
	Workdir string // empty: without --workdir
	Grant   string // JSON; empty: without --tools
	Door    string // the directory on the host; empty: one of the test; none: none
	Secrets string // likewise; empty: none
	Nproc   uint64 // most processes; 0: no limit
	Program string
	TmpSize string // of /tmp, a tmpfs
	ByName  bool   // terminals are opened by their names, as on gVisor
}

// byName is in the environment of a worker with that setting.
const byName = "TERMINALS=by-name"

func setUp(text string) error {
	var s setting
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	mount := func(source, target, kind string, flags uintptr, data string) error {
		if err := unix.Mount(source, target, kind, flags, data); err != nil {
			return fmt.Errorf("mount %s: %w", target, err)
		}
		return nil
	}
	scratch := filepath.Join(filepath.Dir(s.Program), "scratch")
	err := errors.Join(
		mount("proc", "/proc", "proc", 0, ""),
		mount("tmpfs", "/run", "tmpfs", 0, ""),
		mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0620"),
		mount("/dev/pts/ptmx", "/dev/ptmx", "", unix.MS_BIND, ""),
		os.MkdirAll(scratch, 0o755),
		mount("tmpfs", scratch, "tmpfs", 0, "mode=0777,size="+s.TmpSize),
	)
	for target, source := range map[string]string{dialin.Dir: s.Door, secretsDir: s.Secrets} {
		if source != "" && source != "none" {
			err = errors.Join(err, os.MkdirAll(target, 0o755), mount(source, target, "", unix.MS_BIND, ""),
				mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		}
	}
	if s.Nproc > 0 {
		err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: s.Nproc, Max: s.Nproc}))
	}
	err = errors.Join(err, os.Chdir(scratch), unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		syscall.Setgroups(nil), syscall.Setgid(worker), syscall.Setuid(worker))
	if err != nil {
		return err
	}
	argv := []string{"workshop-init", "gate"}
	if s.Workdir != "" {
		argv = append(argv, pid1.Workdir, s.Workdir)
	}
	if s.Grant != "" {
		argv = append(argv, "--tools", s.Grant)
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "COLOR=blue", "GORACE=atexit_sleep_ms=0 log_path=" + filepath.Join(filepath.Dir(s.Program), "races", "race")}
	if s.ByName {
		env = append(env, byName)
	}
	return syscall.Exec(s.Program, argv, env)
}

// room is a worker: a PID 1 in namespaces of its own.
type room struct {
	t    testing.TB
	cmd  *exec.Cmd
	door string
}

func (r *room) pid() int { return r.cmd.Process.Pid }

// everything grants all tools without a limit.
func everything() *tool.Grant {
	g := &tool.Grant{Worker: "greeter", TimeoutMS: 60_000}
	for _, s := range tool.Specs() {
		g.Tools = append(g.Tools, tool.Offer{Name: s.Name})
	}
	return g
}

func text(t testing.TB, g *tool.Grant) string {
	t.Helper()
	b, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func open(t testing.TB, g *tool.Grant) *room { return openWith(t, setting{Grant: text(t, g)}) }

func openWith(t testing.TB, s setting) *room {
	t.Helper()
	testutil.Require(t, os.Geteuid() == 0, "namespaces need root")
	s.Program = initProgram(t)
	if s.TmpSize == "" {
		s.TmpSize = "64m"
	}
	if s.Door == "" {
		s.Door = t.TempDir()
		os.Chmod(s.Door, 0o755)
	}
	b, _ := json.Marshal(s)
	cmd := exec.Command("/proc/self/exe", "set-up", string(b))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWNS, Unshareflags: unix.CLONE_NEWNS,
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &room{t: t, cmd: cmd, door: s.Door}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, made.MaxLine)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), made.Prefix) || !lines.Scan() || lines.Text() != "READY" {
		t.Fatalf("the worker said %q", lines.Text())
	}
	go func() { // whatever else PID 1 writes would be in the container's log
		for lines.Scan() {
			t.Errorf("in the worker's log: %q", lines.Text())
		}
	}()
	return r
}

// enter runs a program as a process of the worker, as an engine's exec does.
func (r *room) enter(args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(r.pid()), "-p", "-m", "-n", "-S", strconv.Itoa(worker), "-G", strconv.Itoa(worker)}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "COLOR=red"}
	return cmd
}

// client is a session's.
type client struct {
	*wire.Conn
	t   testing.TB
	raw io.ReadWriteCloser
}

// session comes by the door.
func (r *room) session(role string) *client {
	r.t.Helper()
	conn, err := dialin.Accept(context.Background(), r.door, r.pid())
	if err != nil {
		r.t.Fatal(err)
	}
	return r.greet(conn, role)
}

// sessionByExec comes by pipes, as through an engine.
func (r *room) sessionByExec(role string) (*client, *exec.Cmd) {
	r.t.Helper()
	cmd := r.enter(initProgram(r.t), "tools")
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return r.greet(pipes{out, in}, role), cmd
}

func (r *room) greet(conn io.ReadWriteCloser, role string) *client {
	r.t.Helper()
	c := &client{Conn: wire.NewClient(conn), t: r.t, raw: conn}
	r.t.Cleanup(func() { c.Close() })
	var w Welcome
	if err := c.Call(within(r.t, 10*time.Second), "hello", Hello{Version: wire.Version, Client: "test", Role: role}, &w); err != nil {
		r.t.Fatal(err)
	}
	return c
}

type pipes struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p pipes) Close() error                { return errors.Join(p.in.Close(), p.ReadCloser.Close()) }

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func (c *client) call(name string, args, result any) error {
	c.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.Call(within(c.t, 30*time.Second), "call", Call{Tool: name, Arguments: b}, result)
}

// shell runs a line, and fails the test where there is no result.
func (c *client) shell(line string) tool.ShellResult {
	c.t.Helper()
	return c.run(tool.ShellArgs{Command: line})
}

func (c *client) run(a tool.ShellArgs) tool.ShellResult {
	c.t.Helper()
	var result tool.ShellResult
	if err := c.call(tool.Shell, a, &result); err != nil {
		c.t.Fatalf("%+v: %v", a, err)
	}
	return result
}

// wants an error of a code that says all of the texts.
func wants(t testing.TB, err error, code int, says ...string) {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("the error is %v (%T), want code %d", err, err, code)
		return
	}
	for _, s := range says {
		if !strings.Contains(e.Message, s) {
			t.Errorf("the error says %q, want %q in it", e.Message, s)
		}
	}
}

var marks atomic.Uint64

// mark is a text that stands in the command line of a process, so that it is
// found from outside.
func mark() string { return fmt.Sprintf("toolbox-test-%d-%d", os.Getpid(), marks.Add(1)) }

// marked lists the processes with a mark (numbers of this machine).
func marked(t testing.TB, mark string) (pids []int) {
	t.Helper()
	list, err := reaper.Scan()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", i.Pid))
		if !i.Ended() && strings.Contains(string(b), mark) {
			pids = append(pids, i.Pid)
		}
	}
	return pids
}

// eventually waits for a state.
// sessions lists the session processes of the worker (numbers of this machine).
func (r *room) sessions() (pids []int) {
	list, err := reaper.Scan()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, i := range reaper.Descendants(list, r.pid()) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", i.Pid))
		if !i.Ended() && strings.HasSuffix(string(b), "\x00tools\x00") {
			pids = append(pids, i.Pid)
		}
	}
	return pids
}
