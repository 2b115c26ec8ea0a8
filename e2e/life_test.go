//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/e2e/scenario"
)

func TestDownLeavesNothing(t *testing.T) {
	s := scenario.New(t, "rooms", "down removes every object of the project")
	s.Up()
	if len(s.Leftovers()) < 5 {
		t.Errorf("up made %v", s.Leftovers())
	}
	s.Expect(0, "down")
	if l := left(s); l != nil {
		t.Errorf("down left %v", l)
	}
	s.Expect(0, "down")
}

// TestUpKilledAtAnyStep: killing or interrupting `up` at any moment leaves
// something that the next up, or down, repairs.
func TestUpKilledAtAnyStep(t *testing.T) {
	s := scenario.New(t, "restricted", "whenever up ends early, nothing is open, and the next up or down repairs it")
	killedAtAnyStep(t, s)
}

// killedAtAnyStep ends `up` of testdata/restricted early, several times; at the end nothing is left.
func killedAtAnyStep(t *testing.T, s *scenario.Scenario) {
	whole := s.Up().Took
	s.Expect(0, "down")
	for i, part := range []float64{0.15, 0.4, 0.65} {
		after := time.Duration(float64(whole) * part)
		sig := []syscall.Signal{syscall.SIGINT, syscall.SIGKILL, syscall.SIGKILL}[i]
		t.Run(fmt.Sprintf("%v after %v", sig, after), func(t *testing.T) {
			cmd := s.Command(context.Background(), "up")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			s.Begun(cmd)
			time.Sleep(after)
			_ = cmd.Process.Signal(sig)
			err := cmd.Wait()
			if exit, ok := err.(*exec.ExitError); sig == syscall.SIGINT && ok && exit.ExitCode() != 130 &&
				exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT { // before it had begun; a shell says 130 of that, too
				t.Errorf("interrupted: %v, want exit code 130", exit)
			}
			// what the engine was asked before the end, it still does
			time.Sleep(300 * time.Millisecond)
			if c, ok := s.Containers()["worker"]; ok && c.State == "running" {
				for _, r := range s.ProbeLoop(c, "connect 198.51.100.66:9000 limit=300ms", "udp 198.51.100.66:5000 limit=300ms") {
					if r.Seen == "open" || r.Seen == "data" {
						t.Errorf("half up and open: %s", r.Seen)
					}
				}
			}
			if i == 2 {
				s.Expect(0, "down")
				if l := left(s); l != nil {
					t.Errorf("down left %v", l)
				}
				return
			}
			s.Up()
			s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200", "connect 198.51.100.66:9000 -> ECONNREFUSED")
		})
	}
}

func TestUpAgainChangesNothing(t *testing.T) {
	s := scenario.New(t, "rooms", "an up of what is up already does nothing, another line touches nothing that runs, and a change recreates what it is about")
	s.Up()
	before := lives(s)
	s.Up()
	goOn(s, before, "first", "second", "third", "room-first", "room-third", "guard")
	edit(s, "ssh.example.org:22", "ssh.example.org:2222")
	s.Up()
	goOn(s, before, "first", "second", "third", "room-first", "room-third", "guard")
	s.Sees("first", "tcp ssh.example.org:2222 send=hello -> data", "connect 198.51.100.22:22 -> ECONNREFUSED")
	s.Sees("third", "connect 198.51.100.22:2222 -> ECONNREFUSED")
	edit(s, "room: own}}", "room: own}, resources: {memory: 512M}}")
	s.Up()
	goOn(s, before, "first", "second", "room-first", "room-third", "guard")
	if lives(s)["third"] == before["third"] {
		t.Error("third has its old memory limit")
	}
}

// TestCommandsAtOnce: commands that change one project take turns.
func TestCommandsAtOnce(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := scenario.New(t, "restricted", "of commands that change one project at the same time, one waits for the other and both do what they say")
	state := s.TempDir()
	s.Env = append(s.Env, "XDG_STATE_HOME="+state)
	at := func(verbs ...string) {
		var all sync.WaitGroup
		for _, verb := range verbs {
			all.Go(func() {
				if d := s.Run(verb); d.Code != 0 {
					t.Errorf("%s beside %v: exit code %d\n%s", verb, verbs, d.Code, d.Err)
				}
			})
		}
		all.Wait()
	}
	unlock := holdLock(t, filepath.Join(state, "workshop", s.Project+".lock"))
	wait := fmt.Sprintf("another workshop command works on project %s (pid %d)", s.Project, os.Getpid())
	var ups []*exec.Cmd
	for range 2 {
		said := filepath.Join(s.TempDir(), "said")
		cmd := s.Command(t.Context(), "up")
		stderr, err := os.Create(said)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = stderr
		err = cmd.Start()
		_ = stderr.Close()
		if err != nil {
			t.Fatal(err)
		}
		ups = append(ups, cmd)
		s.Eventually("up says what it waits for", func() bool { text, _ := os.ReadFile(said); return strings.Contains(string(text), wait) })
	}
	unlock()
	for _, cmd := range ups {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200", "connect 198.51.100.66:9000 -> ECONNREFUSED")
	at("up", "down", "up", "down")
	s.Up()
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200", "connect 198.51.100.66:9000 -> ECONNREFUSED")
	at("down", "down")
	if l := left(s); l != nil {
		t.Errorf("down left %v", l)
	}
}

// holdLock has a project's lock, as a command does that changes it.
func holdLock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(f, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	return func() { _ = os.Remove(path); _ = f.Close() }
}

func TestExecPassesEverything(t *testing.T) {
	passesEverything(restrictedStands.Look(t, "exec passes stdin, both outputs and the exit code, and says 126 and 127 as Docker does"))
}

// passesEverything checks exec in a worker.
func passesEverything(s *scenario.Scenario) {
	s.Helper()
	cmd := s.Command(context.Background(), "exec", "worker", "--", "sh", "-c", "cat; echo err >&2; exit 7")
	cmd.Stdin = strings.NewReader("from stdin")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 7 || string(out) != "from stdin" || !strings.Contains(errs.String(), "err") {
		s.Errorf("out %q, err %q, %v", out, errs.String(), err)
	}
	for want, argv := range map[int][]string{127: {"/nonexistent"}, 126: {"/etc/passwd"}, 0: {"true"}} {
		if d := s.Run(append([]string{"exec", "worker", "--"}, argv...)...); d.Code != want {
			s.Errorf("%v: exit code %d, want %d\n%s", argv, d.Code, want, d.Err)
		}
	}
}

func TestTwoDirectoriesOneProject(t *testing.T) {
	s := scenario.New(t, "none", "a project of another directory is refused, with the -p to use")
	s.Up()
	other := scenario.New(t, "none", "the same name elsewhere")
	other.Project = s.Project
	d := other.Expect(4, "up")
	if !strings.Contains(d.Err, "-p ") {
		t.Errorf("no -p in:\n%s", d.Err)
	}
	other.Expect(4, "down")
	s.Sees("worker", "interfaces -> lo")
}
