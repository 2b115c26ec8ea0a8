//go:build linux

package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// workOnGVisor are the parts of TestGVisorWork, in their order.
var workOnGVisor = []struct {
	name  string
	check func(*testing.T, *scenario.Scenario)
}{
	{"up again changes nothing", unchangedOnGVisor}, {"the log", logOnGVisor}, {"verify is no wish", verifiedWithoutWish},
	{"DNS at a fixed address", fixedAddresses}, {"exec", func(_ *testing.T, s *scenario.Scenario) { passesEverything(s) }},
	{"a terminal", onItsTerminal}, {"cp", copiesBothWays}, {"call", callsTools},
}

// TestGVisorWork: what people and clients do with a worker, they do with one on gVisor.
func TestGVisorWork(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := onGVisor(t, func() *scenario.Scenario {
		s := scenario.New(t, "restricted", "a worker on gVisor is used as any worker: exec, terminals, cp, call, the log, verify")
		s.Write("workers/worker.md", "---\nname: worker\ndescription: Works\nallowed-tools: [Read, Bash]\n---\nYou work.\n")
		edit(s, "- ./ca.pem:/ca.pem\n", "- ./ca.pem:/ca.pem\n      - ./out:/workspace/out:rw\n")
		s.Write("out/a/b.txt", "b")
		return s
	})
	if s == nil {
		return
	}
	for _, part := range workOnGVisor {
		t.Run(part.name, func(t *testing.T) {
			of := *s
			of.TB = t
			part.check(t, &of)
		})
	}
}

// unchangedOnGVisor: of a changed line the guard alone is told.
func unchangedOnGVisor(t *testing.T, s *scenario.Scenario) {
	before := lives(s)
	s.Up()
	edit(s, "ssh.example.org:22", "ssh.example.org:2222")
	s.Up()
	s.Sees("worker", "tcp ssh.example.org:2222 send=hello -> data", "tcp ssh.example.org:22 send=hello -> NXDOMAIN|"+cutOff)
	edit(s, "ssh.example.org:2222", "ssh.example.org:22")
	s.Up()
	s.Sees("worker", "tcp ssh.example.org:22 -> data")
	goOn(s, before, "worker", "outlet", "room", "guard")
}

// logOnGVisor: the log has the guard's lines, and those of the guard after one that is killed.
func logOnGVisor(t *testing.T, s *scenario.Scenario) {
	for _, name := range []string{"one.example.org", "two.example.org"} {
		s.Sees("worker", "dns 127.0.0.1 "+name+" A -> NXDOMAIN")
		s.Eventually("the denial of "+name+" is shown", func() bool {
			d := s.Expect(0, "firewall", "log", "--denied", "--worker", "worker")
			return strings.Contains(d.Out, `"name":"`+name+`"`) && strings.Contains(d.Out, `"workers":["worker"]`)
		})
		s.Crash("guard")
		s.Eventually("the guard serves again", func() bool {
			return s.Probe("worker", "dns 127.0.0.1 allowed.example.org A limit=500ms")[0].Seen == testnet.Allowed
		})
	}
	s.Up() // which compares the guard
}

// verifiedWithoutWish: what verify and explain tried isn't suggested for the file, and what the
// worker tried is.
func verifiedWithoutWish(t *testing.T, s *scenario.Scenario) {
	s.Expect(0, "verify")
	s.Expect(0, "firewall", "explain", "explained.example.org:22")
	s.Sees("worker", "dns 127.0.0.1 wished.example.org A -> NXDOMAIN")
	wished := func() scenario.Done { return s.Expect(0, "firewall", "suggest", "--denied") }
	s.Eventually("what the worker asked for is suggested", func() bool { return strings.Contains(wished().Out, "- wished.example.org ") })
	d := wished()
	if strings.Contains(d.Out, "example.com") || strings.Contains(d.Out, "explained.example.org") {
		t.Errorf("it is suggested:\n%s", d.Out)
	}
	if !strings.Contains(d.Err, "left out: explained.example.org, which `firewall explain` or `verify` tried at the time") {
		t.Errorf("it isn't said that it was tried:\n%s", d.Err)
	}
}

// fixedAddresses: a program that is bound to an address hears of the server that it asked.
func fixedAddresses(t *testing.T, s *scenario.Scenario) {
	const ask = `
import socket, sys
query = b'\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00' + b''.join(bytes([len(x)]) + x for x in b'allowed.example.org'.split(b'.')) + b'\x00\x00\x01\x00\x01'
for source in ['', '127.0.0.1', '127.9.8.7', '198.51.100.9']:
    for server in ['127.0.0.1', '198.51.100.54', '10.1.2.3'] + ['10.2.3.%d' % i for i in range(1, 100)]:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(5)
        s.bind((source, 0))
        s.sendto(query, (server, 53))
        answer, by = s.recvfrom(4096)
        if by != (server, 53) or answer[:2] != query[:2]:
            sys.exit('%r asked %s, and %s answered %r' % (source, server, by, answer))
`
	if d := s.Run("exec", "worker", "--", "python3", "-c", ask); d.Code != 0 {
		t.Errorf("%s%s", d.Out, d.Err)
	}
}

// onItsTerminal: a terminal has a size, which changes with that of the person's, and keys.
func onItsTerminal(t *testing.T, s *scenario.Scenario) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := s.Command(ctx, "exec", "worker", "--", "sh", "-c", "stty size; trap 'stty size' WINCH; echo ready; while ! read line; do :; done; echo got $line; exec sleep 1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	screen, keys := onTerminal(t, cmd)
	defer func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", screen())
		}
	}()
	s.Eventually("it is ready", func() bool { return strings.Contains(screen(), "ready") })
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77}); err != nil {
		t.Fatal(err)
	}
	s.Eventually("it has the new size", func() bool { return strings.Contains(screen(), "33 77") })
	_, _ = keys.WriteString("typed\r")
	s.Eventually("it has what is typed", func() bool { return strings.Contains(screen(), "got typed") })
	_, _ = keys.WriteString("\x03")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d after Ctrl-C, want 130:\n%s", code, screen())
	}
}

// copiesBothWays: cp of files and directories, to and from mounts and what is the worker's own.
func copiesBothWays(t *testing.T, s *scenario.Scenario) {
	text := make([]byte, 3<<20)
	for i := range text {
		text[i] = byte(i * i >> 8)
	}
	s.Write("in/deep/big", string(text))
	s.Write("in/small", "small")
	s.Chown()
	s.Expect(0, "cp", "in", "worker:/scratch/in")
	s.Expect(0, "cp", "in/small", "worker:/workspace/out/small")
	if d := s.Expect(0, "exec", "worker", "--", "sha256sum", "/scratch/in/deep/big"); !strings.HasPrefix(d.Out, fmt.Sprintf("%x ", sha256.Sum256(text))) {
		t.Errorf("in the worker: %s", d.Out)
	}
	s.Expect(0, "cp", "worker:/scratch/in", "back")
	s.Expect(0, "cp", "worker:/workspace/out/a/b.txt", "b.txt")
	if s.Read("back/deep/big") != string(text) || s.Read("back/small") != "small" || s.Read("b.txt") != "b" || s.Read("out/small") != "small" {
		t.Error("what came back differs")
	}
	if info, err := os.Lstat(filepath.Join(s.Dir, "out/small")); err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != scenario.UID {
		t.Errorf("the copy in the mount: %v, %v", info, err)
	}
	if d := s.Run("cp", "in/small", "worker:/etc/small"); d.Code == 0 {
		t.Errorf("a file is in a read-only place: %s", d.Out)
	}
}

// callsTools: each tool that the worker's file lists, and no other.
func callsTools(t *testing.T, s *scenario.Scenario) {
	if d := s.Expect(0, "call", "worker", "read_file", "path=/workspace/out/a/b.txt"); !strings.Contains(d.Out, "b") {
		t.Errorf("read_file: %s%s", d.Out, d.Err)
	}
	if d := s.Run("call", "--approve-all", "worker", "shell", "command=echo said; exit 7"); d.Code != 7 || !strings.Contains(d.Out, "said") {
		t.Errorf("shell: exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	s.Expect(143, "call", "--approve-all", "worker", "shell", "command=sleep 30", "timeout_seconds=0.5")
	s.Expect(4, "call", "--approve-all", "worker", "write_file", "path=/workspace/out/x", "content=x")
	if d := s.Expect(0, "exec", "worker", "--", "sh", "-c", "ps -e 2>/dev/null || cat /proc/[0-9]*/cmdline | tr '\\0' ' '"); strings.Contains(d.Out, "sleep 30") {
		t.Errorf("what timed out goes on:\n%s", d.Out)
	}
}

// TestGVisorFiles: mounts and secrets of a worker on gVisor are those of any worker (B3, B8, B9,
// B11).
func TestGVisorFiles(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := onGVisor(t, func() *scenario.Scenario {
		s := scenario.New(t, "mounts", "a worker on gVisor writes where it may, plants nothing, has a copy without what is excluded, and the secrets that it names")
		toBePlanted(s)
		return s
	})
	if s == nil {
		return
	}
	writesOnlyToDeclared(s)
	hasACopy(s)
	plantsNothing(s)
	secrets := scenario.New(t, "secrets", "a secret of a worker on gVisor is a file of that worker, and stands nowhere else")
	withOwnKernel(secrets)
	holdsSecrets(t, secrets)
}

// TestGVisorUpKilled: `up` that ends early opens nothing, and `down` leaves nothing: neither of
// the engine's, nor a process of gVisor's.
func TestGVisorUpKilled(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	runsc := scenario.Runsc(t)
	if !scenario.Alone(t) {
		return
	}
	scenario.NewGVisorEngine(t, runsc)
	s := scenario.New(t, "restricted", "whenever up of a worker on gVisor ends early, nothing is open, the next up or down repairs it, and down leaves nothing")
	withOwnKernel(s)
	s.Up()
	var ids []string
	for _, c := range s.Containers() {
		ids = append(ids, c.ID)
	}
	if n := naming(t, ids); n == 0 {
		t.Error("control: no process of gVisor's names its container")
	}
	s.Expect(0, "down")
	s.Eventually("no process of gVisor's is left", func() bool { return naming(t, ids) == 0 })
	killedAtAnyStep(t, s)
}

// naming counts processes of this machine whose arguments have one of these.
func naming(t *testing.T, ids []string) (n int) {
	t.Helper()
	all, err := fs.Glob(os.DirFS("/proc"), "[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		text, _ := os.ReadFile(filepath.Join("/proc", name))
		for _, id := range ids {
			if strings.Contains(string(text), id) {
				n++
				break
			}
		}
	}
	return n
}
