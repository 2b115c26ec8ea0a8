//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/e2e/scenario"
)

// carriedBy tells who started the session of an exec: "1" for the worker's PID 1
// (the door), "0" for a process outside of the worker (the engine).
func carriedBy(s *scenario.Scenario) string {
	s.Helper()
	return strings.TrimSpace(s.Expect(0, "exec", "worker", "--", "sh", "-c", `sed -n 's/^PPid:\t*//p' /proc/$PPID/status`).Out)
}

// dialInOf is the directory of the worker's door on this machine.
func dialInOf(s *scenario.Scenario) string {
	s.Helper()
	for _, m := range s.Inspect("worker").Mounts {
		if m.Target == compose.DialInDir {
			return m.Source
		}
	}
	s.Fatal("the worker has no door")
	return ""
}

func TestB41_SessionByDoorAndByEngine(t *testing.T) {
	s := scenario.New(t, "none", "a session comes through the door; where there is none, through the engine; after a restart, it comes again")
	s.Up()
	if by := carriedBy(s); by != "1" {
		t.Errorf("the session was started by %q, not by PID 1", by)
	}
	door := dialInOf(s)
	if entries, err := os.ReadDir(door); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v are left in the door", entries, err)
	}

	s.Crash("worker")
	s.Eventually("the worker is down", func() bool { return s.Inspect("worker").State == "exited" })
	if d := s.Run("exec", "worker", "--", "true"); d.Code != 125 || !strings.Contains(d.Err, "workshop up") {
		t.Errorf("a worker that has ended: %d, %s", d.Code, d.Err)
	}
	s.Up()
	if by := carriedBy(s); by != "1" {
		t.Errorf("after a crash and up, by %q", by)
	}
	s.Expect(0, "restart", "worker")
	if by := carriedBy(s); by != "1" {
		t.Errorf("after a restart, by %q", by)
	}

	if err := os.Rename(dialInOf(s), door+".gone"); err != nil {
		t.Fatal(err)
	}
	if !scenario.DockerAPI() { // nothing but the door leads into a worker
		if d := s.Run("exec", "worker", "--", "true"); d.Code != 125 || !strings.Contains(d.Err, "workshop restart worker") || d.Counted > 5*time.Second {
			t.Errorf("without a door: %d after %v, %s", d.Code, d.Took, d.Err)
		}
		if err := os.Rename(door+".gone", door); err != nil {
			t.Fatal(err)
		}
		s.Expect(0, "restart", "worker")
		if by := carriedBy(s); by != "1" {
			t.Errorf("after the restart, by %q", by)
		}
		s.Expect(0, "down")
		if _, err := os.Lstat(filepath.Dir(door)); err == nil {
			t.Error("down left the door")
		}
		return
	}
	if by := carriedBy(s); by != "0" {
		t.Errorf("without a door the session was started by %q, not by the engine", by)
	}
	if d := s.Expect(7, "exec", "--quiet", "worker", "--", "sh", "-c", "echo out; echo err >&2; exit 7"); d.Out != "out\n" || d.Err != "err\n" {
		t.Errorf("by the engine: %q, %q", d.Out, d.Err)
	}
	for want, argv := range map[int][]string{127: {"/nonexistent"}, 126: {"/etc/passwd"}} {
		if d := s.Run(append([]string{"exec", "worker", "--"}, argv...)...); d.Code != want {
			t.Errorf("by the engine: %v: exit code %d, want %d\n%s", argv, d.Code, want, d.Err)
		}
	}
	// Removed and made anew, it is another one than the worker's.
	if err := os.Mkdir(door, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(door + ".gone"); err != nil {
		t.Fatal(err)
	}
	if d := s.Expect(0, "exec", "worker", "--", "true"); d.Counted > time.Second {
		t.Errorf("a door that is gone was waited for: %v", d.Took)
	}
	if by := carriedBy(s); by != "0" {
		t.Errorf("at a door that is gone, the session was started by %q", by)
	}
	s.Expect(0, "down")
	if _, err := os.Lstat(filepath.Dir(door)); err == nil {
		t.Error("down left the door")
	}
}

func TestPlainCompose_Session(t *testing.T) {
	scenario.OnlyDocker(t, plainCompose)
	s := scenario.New(t, "restricted", "a worker that plain Compose made has no door: its sessions come by the engine, and it can't be read there either")
	composeUp(t, s)
	s.Eventually("the worker runs", func() bool { return s.Containers()["worker"].State == "running" })
	if by := carriedBy(s); by != "0" {
		t.Errorf("the session was started by %q", by)
	}
	s.Sees("worker", "mount /run/workshop -> none", "read /opt/workshop/workshop-init -> EACCES")
}

// What watches the door in the worker and runs with PID 1's uid.
const forger = `use Socket; $| = 1; print "watching\n";
while (1) { for my $f (glob "/run/workshop/*") { next if $seen{$f}; $seen{$f} = 1;
  socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, pack_sockaddr_un($f)) or next;
  my $n = sysread($s, my $b, 100); print $n ? "talked\n" : "refused\n"; } }`

func TestB41_NobodyInTheWorkerForgesASession(t *testing.T) {
	s := scenario.New(t, "none", "a process of the worker, of PID 1's uid, can't stand in for either side of a session, nor look into one")
	owner := "0:0"
	if scenario.TheEngine() == scenario.Rootless { // whose mount is read-only, so that its mode stays
		owner = fmt.Sprintf("%d:%d", scenario.UID, scenario.UID)
	}
	s.Up()
	s.Sees("worker",
		"mount /run/workshop -> ro",
		"write /run/workshop/x.sock text=x -> EROFS",
		"mkdir /run/workshop/x -> EROFS",
		"chmod 0777 /run/workshop -> EROFS|EPERM",
		"rename /run/workshop /run/other -> EBUSY|EROFS",
		"write /scratch/x text=x -> ok", // the control: elsewhere it may
		"list /proc/1/fd -> EACCES",
		"read /proc/1/mem -> EACCES",
		"write /proc/1/fd/1 text=x -> EACCES",
		"read /opt/workshop/workshop-init -> EACCES",
		"stat /opt/workshop/workshop-init -> "+owner+" 0111",
	)
	// A listener of its own can't be put into the door.
	s.Expect(0, "exec", "worker", "--", "perl", "-MSocket", "-e",
		`socket(my $s, AF_UNIX, SOCK_STREAM, 0); exit(!bind($s, pack_sockaddr_un("/run/workshop/x.sock")) && $!{EROFS} ? 0 : 1)`)

	// One that watches and connects first is let go, and the session comes all
	// the same.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := s.Command(ctx, "exec", "worker", "--", "perl", "-e", forger)
	var said syncBuffer
	cmd.Stdout = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.Eventually("it watches", func() bool { return strings.Contains(said.String(), "watching") })
	for i := range 30 {
		if d := s.Run("exec", "worker", "--", "echo", "genuine"); d.Code != 0 || d.Out != "genuine\n" {
			t.Fatalf("exec %d: %d, %q, %s", i, d.Code, d.Out, d.Err)
		}
	}
	s.Eventually("it connected too", func() bool { return strings.Contains(said.String(), "refused") })
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if strings.Contains(said.String(), "talked") {
		t.Error("a process of the worker had a session's connection")
	}
}

// A process of workshop-init is closed to its own uid before it can ask for it;
// one of a program that can be read isn't: that is the control.
func TestB41_InitIsNeverDumpable(t *testing.T) {
	s := scenario.New(t, "none", "every process of workshop-init in a worker is closed to the worker's uid from its first instruction")
	b, err := os.ReadFile(s.Init())
	if err != nil {
		t.Fatal(err)
	}
	s.Write("copy", string(b))
	if err := os.Chmod(filepath.Join(s.Dir, "copy"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "- ./ca.pem:/ca.pem\n", "- ./ca.pem:/ca.pem\n      - ./copy:/copy\n", 1))
	s.Up()
	owner := func(program string) string {
		line := program + ` probe "serve 127.0.0.1:9999" >/dev/null & sleep 0.3; stat -c %u /proc/$!/fd; kill $!`
		return strings.TrimSpace(s.Expect(0, "exec", "worker", "--", "sh", "-c", line).Out)
	}
	// The kernel gives what can't be looked into to root, or, where a user
	// namespace has none, to nobody.
	root := "0"
	if scenario.TheEngine() == scenario.Rootless {
		root = "65534"
	}
	if got := owner(compose.InitPath); got != root {
		t.Errorf("its descriptors belong to uid %s", got)
	}
	if got := owner("/copy"); got != "1000" {
		t.Errorf("control: a copy that can be read: uid %s", got)
	}
	s.Expect(0, "exec", "worker", "--", "sh", "-c", "test $(stat -c %u /proc/$PPID/fd) = "+root+" && ! ls /proc/$PPID/fd")
	for _, verb := range [][]string{{"health", "gate"}, {"probe", "uid -> 1000:1000"}} {
		s.Expect(0, append([]string{"exec", "worker", "--", compose.InitPath}, verb...)...)
	}
}

func TestB11_NothingOfASessionIsLogged(t *testing.T) {
	s := scenario.New(t, "restricted", "what a session carries stands in no container's log")
	s.Up()
	const in, out = "kept-quiet-in", "kept-quiet-out"
	cmd := s.Command(context.Background(), "exec", "-e", "X="+out, "worker", "--", "sh", "-c", `cat; echo $X; echo $X >&2`)
	cmd.Stdin = strings.NewReader(in)
	if b, err := cmd.CombinedOutput(); err != nil || strings.Count(string(b), "kept-quiet") != 3 {
		t.Fatalf("%v, %s", err, b)
	}
	s.Expect(127, "exec", "worker", "--", "/"+in)
	for service := range s.Containers() {
		if logs := s.Logs(service); strings.Contains(logs, "kept-quiet") || !strings.Contains(logs, "READY") {
			t.Errorf("%s: %s", service, logs)
		}
	}
}

func TestExecIsAsWithDocker(t *testing.T) {
	s := scenario.New(t, "none", "exec without a terminal: variables, directory, signals, large streams, the background, a client that vanishes")
	s.Up()
	if d := s.Expect(0, "exec", "-e", "A=b c", "-w", "/usr", "worker", "--", "sh", "-c", `echo "$A $PWD $HOME $(id -u)"`); d.Out != "b c /usr /home/worker 1000\n" {
		t.Errorf("%q", d.Out)
	}
	if d := s.Run("exec", "-w", "/nowhere", "worker", "--", "true"); d.Code != 125 || !strings.Contains(d.Err, "--workdir /nowhere") {
		t.Errorf("%d, %s", d.Code, d.Err)
	}
	s.Expect(128+9, "exec", "worker", "--", "sh", "-c", "kill -9 $$")

	t.Run("signals", func(t *testing.T) {
		cmd := s.Command(context.Background(), "exec", "worker", "--", "sh", "-c", `trap 'echo got; exit 9' INT; echo ready; while :; do sleep 0.05; done`)
		var out syncBuffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.Eventually("it runs", func() bool { return strings.Contains(out.String(), "ready") })
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 9 || out.String() != "ready\ngot\n" {
			t.Errorf("%d, %q", code, out.String())
		}
	})
	t.Run("large streams", func(t *testing.T) {
		in := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
		cmd := s.Command(context.Background(), "exec", "worker", "--", "cat")
		cmd.Stdin = bytes.NewReader(in)
		if out, err := cmd.Output(); err != nil || !bytes.Equal(out, in) {
			t.Errorf("%d bytes came back, %v", len(out), err)
		}
	})
	t.Run("a reader that stops", func(t *testing.T) {
		cmd := s.Command(context.Background(), "exec", "worker", "--", "sh", "-c", "yes; true")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		out.Close()
		_ = cmd.Wait()
		gone(s, "yes")
	})
	t.Run("the background stays", func(t *testing.T) {
		if d := s.Expect(0, "exec", "worker", "--", "sh", "-c", "sleep 7001 >/dev/null 2>&1 & echo started"); d.Counted > scenario.FailFast {
			t.Errorf("it took %v", d.Took)
		}
		time.Sleep(300 * time.Millisecond)
		s.Expect(0, "exec", "worker", "--", "pkill", "-f", "sleep 7001")
	})
	t.Run("a client that vanishes", func(t *testing.T) {
		cmd := s.Command(context.Background(), "exec", "worker", "--", "sh", "-c", "echo ready; sleep 7002")
		var out syncBuffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.Eventually("it runs", func() bool { return strings.Contains(out.String(), "ready") })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		gone(s, "sleep 7002")
	})
	t.Run("a worker that ends", func(t *testing.T) { execOfWorkerThatEnds(s) })
}

// execOfWorkerThatEnds ends the worker below a command, which ends then and says so.
func execOfWorkerThatEnds(s *scenario.Scenario) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := s.Command(ctx, "exec", "worker", "--", "sh", "-c", "echo ready; sleep 7003")
	var out, errs syncBuffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Eventually("it runs", func() bool { return strings.Contains(out.String(), "ready") })
	s.Crash("worker")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 125 || !strings.Contains(errs.String(), "lost") {
		s.Errorf("%d, %s", code, errs.String())
	}
}

// gone waits until no process of the worker has the text in its arguments.
func gone(s *scenario.Scenario, text string) {
	s.Helper()
	s.Eventually(text+" has ended", func() bool {
		return s.Run("exec", "--quiet", "worker", "--", "pgrep", "-f", "^"+text).Code == 1
	})
}

// syncBuffer is read while a command writes to it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
