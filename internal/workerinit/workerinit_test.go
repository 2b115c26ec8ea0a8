//go:build linux

package workerinit

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier/outlet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/lib/mounttable"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
)

// The test binary is also the gate, PID 1 of a pid namespace, and what runs
// behind it.
const roleVariable = "WORKSHOP_GATE_TEST_ROLE"

// bindVariable holds a path that is mounted over itself, read-only unless
// writableVariable is set, or over the mount point in pointVariable.
const (
	bindVariable     = "WORKSHOP_GATE_TEST_BIND"
	pointVariable    = "WORKSHOP_GATE_TEST_POINT"
	writableVariable = "WORKSHOP_GATE_TEST_WRITABLE"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "set up": // PID 1 as root
		fmt.Println("FAILED set up:", setUp())
		os.Exit(1)
	case "gate":
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	case "outlet":
		os.Exit(outlet.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
}

// setUp does what an engine does before it starts PID 1. Only exec makes a
// process dumpable again after it has changed its uid, as in a container.
func setUp() error {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	for line := range strings.Lines(made.Mountinfo()) {
		if point := strings.Fields(line)[4]; strings.HasPrefix(point, "/tmp/") { // another test's, which takes it away
			_ = unix.Unmount(point, unix.MNT_DETACH)
		}
	}
	if source := os.Getenv(bindVariable); source != "" {
		point := cmp.Or(os.Getenv(pointVariable), source)
		if err := unix.Mount(source, point, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		if os.Getenv(writableVariable) != "" {
			return drop()
		}
		if err := unix.Mount("", point, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return err
		}
	}
	return drop()
}

// drop goes on as PID 1 of a worker.
func drop() error {
	if err := syscall.Setgid(worker); err != nil {
		return err
	}
	if err := syscall.Setuid(worker); err != nil {
		return err
	}
	os.Setenv(roleVariable, "gate")
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

const worker = 1000

// soon is far below the ten seconds after which an engine kills. (The race
// detector would sleep one at the end of a process: see start.)
const soon = 700 * time.Millisecond

// gate is a gate in namespaces of its own.
type gate struct {
	t    *testing.T
	cmd  *exec.Cmd
	said chan string
}

func start(t *testing.T, args ...string) *gate {
	t.Helper()
	testutil.Require(t, os.Geteuid() == 0, "namespaces need root")
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), roleVariable+"=set up", "GORACE=atexit_sleep_ms=0")
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
	g := &gate{t: t, cmd: cmd, said: make(chan string, 10)}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			if !strings.HasPrefix(s.Text(), made.Prefix) {
				g.said <- s.Text()
			}
		}
		close(g.said)
	}()
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return g
}

func (g *gate) expect(want string) string {
	g.t.Helper()
	select {
	case line := <-g.said:
		if !strings.HasPrefix(line, want) {
			g.t.Fatalf("the gate said %q, want %q", line, want)
		}
		return line
	case <-time.After(10 * time.Second):
		g.t.Fatalf("the gate says nothing, want %q", want)
	}
	return ""
}

// status returns a field of the gate's /proc/PID/status.
func (g *gate) status(field string) string {
	g.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid))
	if err != nil {
		g.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n"+field+":\t")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// inside runs f on a thread in the gate's network namespace.
func (g *gate) inside(f func() error) {
	g.t.Helper()
	testutil.InNetwork(g.t, g.cmd.Process.Pid, f)
}

// enter runs a program as a process of the worker, as `exec` does.
func (g *gate) enter(args ...string) *exec.Cmd {
	_, err := exec.LookPath("nsenter")
	testutil.Require(g.t, err == nil, "nsenter is not installed")
	return exec.Command("nsenter", append([]string{"-t", strconv.Itoa(g.cmd.Process.Pid), "-p", "-m", "-n", "-S", strconv.Itoa(worker), "-G", strconv.Itoa(worker)}, args...)...)
}

// stop sends SIGTERM and returns how long the end took.
func (g *gate) stop() time.Duration {
	g.t.Helper()
	begin := testutil.Now()
	g.cmd.Process.Signal(unix.SIGTERM)
	if err := g.cmd.Wait(); err != nil {
		g.t.Errorf("exit: %v", err)
	}
	return testutil.Since(begin)
}

// answerDNS serves 127.0.0.1:53 in the gate's namespace with one rcode.
func (g *gate) answerDNS(code dnsmessage.RCode) (asked chan string) {
	g.t.Helper()
	return answerIn(g.t, func(f func() error) error {
		g.inside(func() error { return errors.Join(exec.Command("ip", "link", "set", "lo", "up").Run(), f()) })
		return nil
	}, code)
}

// answerIn serves 127.0.0.1:53 in a namespace.
func answerIn(t *testing.T, in func(func() error) error, code dnsmessage.RCode) (asked chan string) {
	t.Helper()
	var p net.PacketConn
	if err := in(func() (err error) { p, err = net.ListenPacket("udp4", resolver); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	asked = make(chan string, 100)
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if err := m.Unpack(buf[:n]); err != nil {
				continue
			}
			asked <- m.Questions[0].Name.String()
			m.Response, m.RCode = true, code
			if b, err := m.Pack(); err == nil {
				p.WriteTo(b, from)
			}
		}
	}()
	return asked
}

// TestWaitsForRoom: READY comes when the room's DNS says so, and not before.
func TestWaitsForRoom(t *testing.T) {
	g := start(t, "--room")
	select {
	case line := <-g.said:
		t.Fatalf("said %q without a room", line)
	case <-time.After(300 * time.Millisecond):
	}
	asked := g.answerDNS(dnsmessage.RCodeSuccess)
	begin := time.Now()
	g.expect("READY")
	t.Logf("READY %v after the DNS", time.Since(begin))
	if name := <-asked; name != "ready.workshop.internal." {
		t.Errorf("asked for %s", name)
	}
	if took := g.stop(); took > soon {
		t.Errorf("the end took %v", took)
	}
}

func TestRefusingDNSIsNotReady(t *testing.T) {
	g := start(t, "--room", "--timeout", "400ms")
	g.answerDNS(dnsmessage.RCodeNameError)
	if line := g.expect("FAILED the guard did not answer"); !strings.Contains(line, "logs") {
		t.Errorf("no word on what to do: %q", line)
	}
	if g.cmd.Wait(); g.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d", g.cmd.ProcessState.ExitCode())
	}
}

// TestStopsWhileWaiting: `docker stop` doesn't wait for a room that never comes.
func TestStopsWhileWaiting(t *testing.T) {
	g := start(t, "--room")
	<-g.answerDNS(dnsmessage.RCodeNameError) // it waits: a signal before its handlers would be lost
	if took := g.stop(); took > soon {
		t.Errorf("the end took %v", took)
	}
}

// TestWrite: B4. What can't be written is named with uid, owner and what to do.
func TestWrite(t *testing.T) {
	base, err := os.MkdirTemp("", "ws-gate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	os.Chmod(base, 0o755)
	mine, theirs := filepath.Join(base, "mine"), filepath.Join(base, "theirs")
	for dir, uid := range map[string]int{mine: worker, theirs: 0} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, uid, uid); err != nil {
			testutil.Require(t, false, "changing owners needs root")
		}
	}
	g := start(t, "--write", mine)
	g.expect("READY")
	if list, _ := os.ReadDir(mine); len(list) != 0 {
		t.Errorf("the test left %v", list)
	}
	g.stop()

	for dir, want := range map[string][]string{
		theirs:      {theirs + " is not writable for uid 1000", "it belongs to 0:0, mode 0755", "chown -R 1000", "permission denied"},
		base + "/x": {base + "/x does not exist"},
		"/proc/sys": {"/proc/sys is not writable"},
	} {
		g := start(t, "--write", mine, "--write", dir)
		line := g.expect("FAILED ")
		for _, w := range want {
			if !strings.Contains(line, w) {
				t.Errorf("said %q, want %q in it", line, w)
			}
		}
		if g.cmd.Wait(); g.cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: exit code %d", dir, g.cmd.ProcessState.ExitCode())
		}
	}
	// Both problems at once.
	g = start(t, "--write", theirs, "--write", base+"/x")
	if line := g.expect("FAILED "); !strings.Contains(line, "theirs is not") || !strings.Contains(line, "x does not exist") {
		t.Errorf("said %q", line)
	}
}

// TestWorkdir: PID 1 works where it is told, made as its user, or nothing starts.
func TestWorkdir(t *testing.T) {
	base, err := os.MkdirTemp("", "ws-gate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := errors.Join(os.Chmod(base, 0o755), os.Mkdir(base+"/mine", 0o755), os.Symlink("mine", base+"/link"), os.Symlink("/proc/self/root/tmp", base+"/magic")); err != nil {
		t.Fatal(err)
	}
	testutil.Require(t, os.Chown(base+"/mine", worker, worker) == nil, "changing owners needs root")

	g := start(t, "--write", base+"/mine", "--workdir", base+"/link/new")
	g.expect("READY")
	if got, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", g.cmd.Process.Pid)); err != nil || got != base+"/mine/new" {
		t.Errorf("PID 1 is in %q, %v", got, err)
	}
	if info, err := os.Stat(base + "/mine/new"); err != nil || info.Sys().(*syscall.Stat_t).Uid != worker {
		t.Errorf("made: %v, %v", info, err)
	}
	g.stop()

	for _, test := range []struct{ name, dir, want string }{
		{"a magic link", base + "/magic", "leads through a magic link"},
		{"a directory of procfs", "/proc/self/fd", "it is in /proc or /sys"},
		{"where nothing can be made", base + "/x", "there is no such directory in the worker, and it can't be made (permission denied): make it in"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := start(t, "--workdir", test.dir)
			if line := g.expect("FAILED workdir " + test.dir + ": "); !strings.Contains(line, test.want) {
				t.Errorf("said %q, want %q in it", line, test.want)
			}
		})
	}
}

// TestInit: orphans are reaped, and the end takes milliseconds with processes
// running that would rather stay.
func TestInit(t *testing.T) {
	g := start(t)
	g.expect("READY")
	// The shell ends, its children become those of PID 1.
	if out, err := g.enter("sh", "-c", "sleep 0.1 & sleep 0.1 & exit 0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		out, err := g.enter("ps", "-e", "-o", "stat=,comm=").Output()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out), "Z") && !strings.Contains(string(out), "sleep") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not reaped:\n%s", out)
		}
		time.Sleep(20 * time.Millisecond)
	}
	trap := filepath.Join(t.TempDir(), "trapped")
	os.Chmod(filepath.Dir(trap), 0o777)
	os.Chmod(filepath.Dir(filepath.Dir(trap)), 0o777)
	stubborn := g.enter("sh", "-c", "trap 'echo TERM > "+trap+"' TERM; while :; do sleep 0.01; done")
	if err := stubborn.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if took := g.stop(); took > soon {
		t.Errorf("the end took %v", took)
	}
	stubborn.Wait()
	if b, _ := os.ReadFile(trap); string(b) != "TERM\n" {
		t.Errorf("the signal was not forwarded: %q", b)
	}
}

// TestSignals: a worker's process can't end the gate by a signal that means nothing to it,
// nor keep it busy: the kernel drops what has no handler.
func TestSignals(t *testing.T) {
	g := start(t)
	g.expect("READY")
	var want uint64
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGCHLD, unix.SIGURG, unix.SIGILL, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV} {
		want |= 1 << (s - 1)
	}
	if got := g.status("SigCgt"); got != fmt.Sprintf("%016x", want) {
		t.Errorf("it handles %s; want %016x", got, want)
	}
	if out, err := g.enter("sh", "-c", "for s in $(seq 64); do case $s in 2|4|7|8|9|11|15) ;; *) kill -$s 1 || exit 1 ;; esac; done; sleep 0.2; kill -0 1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if took := g.stop(); took > soon {
		t.Errorf("the end took %v", took)
	}
}

// TestNotDumpable: a process of the same uid can't write to the gate's stdout
// or look into its memory; the control is a process that is dumpable.
func TestNotDumpable(t *testing.T) {
	g := start(t)
	g.expect("READY")
	for _, file := range []string{"/proc/1/fd/1", "/proc/1/mem", "/proc/1/environ"} {
		if out, err := g.enter("sh", "-c", "exec 3<"+file).CombinedOutput(); err == nil || !strings.Contains(strings.ToLower(string(out)), "denied") {
			t.Errorf("%s can be opened: %v %s", file, err, out)
		}
	}
	if out, err := g.enter("sh", "-c", "sleep 5 >/dev/null 2>&1 & exec 3</proc/$!/environ").CombinedOutput(); err != nil {
		t.Errorf("the control failed: %v %s", err, out)
	}
}

// TestTools: what tools may do is understood as a whole, or nothing starts.
func TestTools(t *testing.T) {
	g := start(t, "--tools", `{"worker":"a","tools":[{"name":"shell","limit":"git:*"}],"timeout":"10m0s"}`)
	g.expect("READY")
	g.stop()
	for _, tools := range []string{"", "x", "{", `{"worker":"a"} {}`, `{"worker":"a","tool":[]}`, `{"worker":"a","tools":[{"name":"rm"}]}`, `{"worker":"a","timeout":"soon"}`, `{"worker":"a","mcp":{"x":{"command":[]}}}`} {
		g := start(t, "--tools", tools)
		g.expect("FAILED --tools: ")
		if g.cmd.Wait(); g.cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: exit code %d", tools, g.cmd.ProcessState.ExitCode())
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"--write", "relative"}, {"--rooms"}, {"--timeout", "soon"}, {"--tools"}, {"--tools", "{}", "--tools", "{}"}, {"--workdir", "x"}, {"--workdir", "/x", "--workdir", "/y"}} {
		if _, err := parseArgs(args, os.NewFile(^uintptr(0), "")); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}

func FuzzIsReady(f *testing.F) {
	query, id, err := readyQuery()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(query, id)
	f.Fuzz(func(t *testing.T, b []byte, id uint16) { isReady(b, id) })
}

// B3, B8: a mount that the host takes away, since its place was replaced or removed
// there, ends the worker: what it protected can be written then.
func TestB08_LostMountEndsTheWorker(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(path string) error
		lose func(path string) error
	}{
		{"a file is saved by rename", touch, func(p string) error { return errors.Join(touch(p+".new"), os.Rename(p+".new", p)) }},
		{"a file is removed", touch, os.Remove},
		{"a file is renamed, and saved anew", touch, func(p string) error { return errors.Join(os.Rename(p, p+"~"), touch(p)) }},
		{"a directory above is renamed", touch, func(p string) error { return os.Rename(filepath.Dir(p), filepath.Dir(p)+"2") }},
		{"a directory is removed", func(p string) error { return os.Mkdir(p, 0o755) }, os.Remove},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testutil.Require(t, os.Geteuid() == 0, "mounts need root")
			point := filepath.Join(t.TempDir(), "above", "a b")
			if err := os.Mkdir(filepath.Dir(point), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := tt.make(point); err != nil {
				t.Fatal(err)
			}
			t.Setenv(bindVariable, point)
			g := start(t)
			g.expect("READY")
			sleep := g.enter("sleep", "60")
			if err := sleep.Start(); err != nil {
				t.Fatal(err)
			}
			if err := touch(filepath.Join(filepath.Dir(point), "beside")); err != nil { // changes no mount
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
			if err := unix.Kill(g.cmd.Process.Pid, 0); err != nil {
				t.Fatalf("it ended before: %v", err)
			}
			begin := testutil.Now()
			if err := tt.lose(point); err != nil {
				t.Fatal(err)
			}
			g.expect("FAILED the mount at " + strings.ReplaceAll(point, " ", `\040`) + " is gone")
			if err := sleep.Wait(); err == nil {
				t.Error("its processes go on")
			}
			if _ = g.cmd.Wait(); g.cmd.ProcessState.ExitCode() != pid1.MountLost {
				t.Errorf("%v, want exit code %d", g.cmd.ProcessState, pid1.MountLost)
			}
			if took := testutil.Since(begin); took > soon {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// B8: the kernel keeps a mount whose source is renamed or removed on the host. The
// worker doesn't go on in what has another name there, or none.
func TestB08_ReplacedSourceEndsTheWorker(t *testing.T) {
	dir := func(p string) error { return os.Mkdir(p, 0o755) }
	again := func(make func(string) error) func(string) error {
		return func(p string) error { return errors.Join(os.Rename(p, p+"2"), make(p)) }
	}
	saved := func(p string) error { return errors.Join(touch(p+".new"), os.Rename(p+".new", p)) }
	for _, tt := range []struct {
		name     string
		make     func(path string) error
		writable bool
		lose     func(path string) error
		stays    bool
	}{
		{name: "a directory is renamed", make: dir, lose: again(dir)},
		{name: "a directory is exchanged", make: dir, lose: func(p string) error {
			return errors.Join(dir(p+"2"), unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, p+"2", unix.RENAME_EXCHANGE))
		}},
		{name: "a directory is removed", make: dir, lose: os.Remove},
		{name: "a directory above is renamed", make: dir, lose: func(p string) error { return os.Rename(filepath.Dir(p), filepath.Dir(p)+"2") }},
		{name: "a writable directory is renamed", make: dir, writable: true, lose: again(dir)},
		{name: "a writable file is renamed", make: touch, writable: true, lose: again(touch)},
		{name: "a writable file is saved by rename", make: touch, writable: true, lose: saved},
		{name: "a file is renamed", make: touch, lose: again(touch), stays: true},
		{name: "a file is saved by rename", make: touch, lose: saved, stays: true},
		{name: "something else is renamed", make: dir, lose: func(p string) error { return again(dir)(filepath.Join(filepath.Dir(p), "other")) }, stays: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testutil.Require(t, os.Geteuid() == 0, "mounts need root")
			source, point := filepath.Join(t.TempDir(), "above", "a b"), filepath.Join(t.TempDir(), "c d")
			if err := errors.Join(dir(filepath.Dir(source)), tt.make(source), dir(filepath.Join(filepath.Dir(source), "other")), tt.make(point)); err != nil {
				t.Fatal(err)
			}
			for dir := point; dir != "/tmp"; dir = filepath.Dir(dir) { // PID 1 looks at it
				_ = os.Chmod(dir, 0o755)
			}
			t.Setenv(bindVariable, source)
			t.Setenv(pointVariable, point)
			if tt.writable {
				t.Setenv(writableVariable, "1")
			}
			g := start(t)
			g.expect("READY")
			if err := tt.lose(source); err != nil {
				t.Fatal(err)
			}
			if tt.stays {
				time.Sleep(2 * mounttable.LookAgain)
				if took := g.stop(); took > soon {
					t.Errorf("the end took %v", took)
				}
				return
			}
			g.expect("FAILED the mount at " + strings.ReplaceAll(point, " ", `\040`) + " is gone")
			if _ = g.cmd.Wait(); g.cmd.ProcessState.ExitCode() != pid1.MountLost {
				t.Errorf("%v, want exit code %d", g.cmd.ProcessState, pid1.MountLost)
			}
		})
	}
}

func touch(path string) error { return os.WriteFile(path, nil, 0o644) }
