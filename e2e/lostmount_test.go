//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// aWorkshopInside mounts the project with the workshop.yaml, and this read-only.
const aWorkshopInside = "{source: ./, target: /workspace, mode: rw}\n      - {source: ./workshop.yaml, target: /workspace/workshop.yaml}\n    network: {mode: restricted, allow: [a.example.org]}"

// TestB03_LostMountEndsTheWorker: a read-only mount inside of a writable one that the
// host takes away, as by a save of an editor, ends the worker at once. The next start
// has it again.
func TestB03_LostMountEndsTheWorker(t *testing.T) {
	s := scenario.At(t, "a worker whose read-only mount is gone doesn't go on", withMount(strings.Replace(aWorkshopInside, "\n    network", "\n      - ./data:/data\n    network", 1)))
	mkdir(t, s.Dir, "data")
	s.Write("workers/worker.md", "---\nname: worker\ndescription: Reads.\nallowed-tools: [Read]\n---\nYou read.\n")
	mkdir(t, s.Dir, ".vscode")
	s.Chown()
	s.Up()
	file := filepath.Join(s.Dir, "workshop.yaml")
	for _, lose := range []struct {
		name string
		how  func() error
	}{
		{"saved by rename", func() error { return os.Rename(file+".new", file) }},
		{"moved away, saved anew", func() error {
			if err := os.Rename(file, file+"~"); err != nil {
				return err
			}
			return os.Rename(file+".new", file)
		}},
		{"a mounted directory is another one", func() error {
			data := filepath.Join(s.Dir, "data")
			if err := os.Remove(data); err != nil {
				return err
			}
			return os.Mkdir(data, 0o755)
		}},
		{"a directory of B8 is removed", func() error { return os.Remove(filepath.Join(s.Dir, ".vscode")) }},
	} {
		s.Sees("worker", `write /workspace/workshop.yaml text="no" -> EROFS`, "write /workspace/other -> ok")
		s.Write("workshop.yaml.new", s.Read("workshop.yaml"))
		s.Chown()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		sleep := s.Command(ctx, "exec", "worker", "--", "sleep", "60")
		var says bytes.Buffer
		sleep.Stderr = &says
		if err := sleep.Start(); err != nil {
			t.Fatal(err)
		}
		s.Eventually("the command runs", func() bool { return len(s.Processes("worker")) > 1 })
		begin := testutil.Now()
		if err := lose.how(); err != nil {
			t.Fatal(err)
		}
		if err := sleep.Wait(); err == nil || ctx.Err() != nil {
			t.Errorf("%s: the command went on: %v", lose.name, err)
		}
		if want := "worker worker is exited: it ended, as a mount of it was lost"; !strings.Contains(says.String(), want) {
			t.Errorf("%s: it says\n%swant %q", lose.name, says.String(), want)
		}
		cancel()
		if took := testutil.Since(begin); took > 3*time.Second {
			t.Errorf("%s: it took %v", lose.name, took)
		}
		s.Eventually("ps says why it ended", func() bool { return strings.Contains(s.Run("ps").Err, "a mount of it was lost") })
		if d := s.Run("exec", "worker", "--", "true"); d.Code != 125 || !strings.Contains(d.Err, "a mount of it was lost") {
			t.Errorf("%s: exec: exit code %d\n%s", lose.name, d.Code, d.Err)
		}
		if d := s.Run("logs", "worker"); !strings.Contains(d.Out, "FAILED the mount at /") {
			t.Errorf("%s: logs: %s%s", lose.name, d.Out, d.Err)
		}
		s.Up()
	}
}

// TestB08_ReplacedSourceEndsTheWorker: the kernel keeps a mount whose source gets another
// name. The worker ends as well, and what it may have written to the former directory
// isn't forgotten.
func TestB08_ReplacedSourceEndsTheWorker(t *testing.T) {
	s := scenario.At(t, "a worker doesn't go on in a directory that has another name on the host", withMount("./src:/src\n      - {source: ./d, target: /d, mode: rw}"))
	mkdir(t, s.Dir, "d")
	s.Write("src/a", "old")
	s.Chown()
	s.Up()
	at := func(name string) string { return filepath.Join(s.Dir, name) }
	again := func(name string) error {
		return errors.Join(os.Rename(at(name), at(name+"2")), os.Mkdir(at(name), 0o755))
	}
	for _, tt := range []struct {
		name     string
		replace  func() error
		writable bool
	}{
		{name: "a source", replace: func() error { return again("src") }},
		{name: "a writable source", replace: func() error { return again("d") }, writable: true},
		{name: "the project", replace: func() error {
			return errors.Join(os.Rename(s.Dir, s.Dir+".old"), exec.Command("cp", "-a", s.Dir+".old", s.Dir).Run())
		}, writable: true},
	} {
		s.Expect(0, "ps", "--strict")
		s.Sees("worker", "write /d/file -> ok")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		attack := s.Command(ctx, "exec", "worker", "--", "sh", "-c", "while :; do echo evil >>/d/notes; done 2>/dev/null")
		if err := attack.Start(); err != nil {
			t.Fatal(err)
		}
		s.Eventually("the attack runs", func() bool { return len(s.Processes("worker")) > 1 })
		if err := tt.replace(); err != nil {
			t.Fatal(err)
		}
		s.Chown()
		if _ = attack.Wait(); ctx.Err() != nil {
			t.Errorf("%s: the worker went on", tt.name)
		}
		cancel()
		s.Eventually("ps says why it ended", func() bool { return strings.Contains(s.Run("ps").Err, "a mount of it was lost") })
		if d := s.Run("ps", "--strict"); tt.writable && (d.Code != 4 || !strings.Contains(d.Err, "replaced, renamed or removed on the host: d: ")) || !tt.writable && d.Code != 0 {
			t.Errorf("%s: ps --strict: exit code %d\n%s", tt.name, d.Code, d.Err)
		}
		if d := s.Run("exec", "worker", "--", "true"); d.Code != 125 || !strings.Contains(d.Err, "a mount of it was lost") {
			t.Errorf("%s: exec: exit code %d\n%s", tt.name, d.Code, d.Err)
		}
		s.Write("src/a", tt.name)
		s.Chown()
		s.Up()
		if d := s.Run("exec", "worker", "--", "cat", "/src/a"); d.Out != tt.name {
			t.Errorf("%s: the worker reads %q\n%s", tt.name, d.Out, d.Err)
		}
	}
}

// TestB03_LostMountEndsAFloodingWorker: a worker that floods its PID 1 with signals
// doesn't keep it from seeing that a mount is lost, nor other workshops of the same
// user from starting.
func TestB03_LostMountEndsAFloodingWorker(t *testing.T) {
	s := scenario.At(t, "a worker that floods its PID 1 ends too when a read-only mount is gone", withMount(strings.Replace(aWorkshopInside, "\n    network", "\n      - ./intruder:/intruder\n    network", 1)))
	addIntruder(s)
	s.Up()
	s.Write("workshop.yaml.new", s.Read("workshop.yaml"))
	s.Chown()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	attack := s.Command(ctx, "exec", "worker", "--", "/intruder", "flood 1 /workspace/begun")
	var says bytes.Buffer
	attack.Stdout, attack.Stderr = &says, &says
	if err := attack.Start(); err != nil {
		t.Fatal(err)
	}
	s.Eventually("it has begun", func() bool { _, err := os.Stat(filepath.Join(s.Dir, "begun")); return err == nil })
	time.Sleep(time.Second) // until all threads take part
	// B60: the kernel counts by uid what is queued. Other programs of the user keep theirs.
	// It counts a signal before it compares (kernel/signal.c, __sigqueue_alloc), so that
	// for a moment one more is seen for each of the intruder's 100 threads.
	queued, limit, _ := strings.Cut(s.ProcStatus("worker", "SigQ"), "/")
	if n, err := strconv.Atoi(queued); err != nil || n > 1024+100 || limit != "1024" {
		t.Errorf("the worker has %s signals queued, of %s: want at most 1024", queued, limit)
	}
	other := scenario.At(t, "a workshop of the same user starts meanwhile", withMount("./src:/src"))
	mkdir(t, other.Dir, "src")
	other.Up()
	file := filepath.Join(s.Dir, "workshop.yaml")
	// The kernel doesn't report that a mount moved: PID 1 has to look.
	if err := errors.Join(os.Rename(file, file+"~"), os.Rename(file+".new", file)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- attack.Wait() }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the worker goes on")
		cancel()
		<-ended
	}
	if want := "it ended, as a mount of it was lost"; !strings.Contains(says.String(), want) {
		t.Errorf("it says\n%swant %q", says.String(), want)
	}
}

// TestB03_OwnSavesLoseNoMount: what the program writes into a workshop.yaml that a
// worker mounts takes no mount away.
func TestB03_OwnSavesLoseNoMount(t *testing.T) {
	s := scenario.At(t, "a rule that is saved into the mounted workshop.yaml leaves the worker as it is", withMount(aWorkshopInside))
	s.Chown()
	s.Up()
	before := s.Inspect("worker").ID
	s.Expect(0, "firewall", "allow", "saved.example.org", "--save")
	if !strings.Contains(s.Read("workshop.yaml"), "saved.example.org") {
		t.Fatal("it wasn't saved")
	}
	time.Sleep(time.Second) // PID 1 compares four times a second
	s.Sees("worker", `write /workspace/workshop.yaml text="no" -> EROFS`)
	if now := s.Inspect("worker"); now.ID != before {
		t.Error("the worker is another one")
	}
	if d := s.Run("exec", "worker", "--", "grep", "-c", "saved.example.org", "/workspace/workshop.yaml"); d.Code != 0 {
		t.Errorf("the worker doesn't see the new text: %s%s", d.Out, d.Err)
	}
	if found, _ := filepath.Glob(filepath.Join(s.Dir, ".new-*")); found != nil {
		t.Errorf("left: %v", found)
	}
}

// TestB08_SavedByRenameIsReviewed: while a mount is lost a worker can write to the
// workshop.yaml that took its place. What it says then is shown before anything obeys it.
func TestB08_SavedByRenameIsReviewed(t *testing.T) {
	s := scenario.At(t, "lines of a workshop.yaml that a worker may have written grant nothing until a person takes them", withMount(aWorkshopInside))
	s.Chown()
	s.Up()
	mine := s.Read("workshop.yaml")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// The worker appends to the file as soon as it can.
	attack := s.Command(ctx, "exec", "worker", "--", "sh", "-c", `while :; do echo "# a worker's" >> /workspace/workshop.yaml; done 2>/dev/null`)
	if err := attack.Start(); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the attack runs", func() bool { return len(s.Processes("worker")) > 1 })
	s.Write("workshop.yaml.new", strings.Replace(mine, "[a.example.org]", "[a.example.org, b.example.org]", 1))
	s.Chown()
	file := filepath.Join(s.Dir, "workshop.yaml")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	_ = attack.Wait()
	t.Logf("the worker wrote %d lines", strings.Count(s.Read("workshop.yaml"), "a worker's"))
	for _, args := range [][]string{{"firewall", "reload"}, {"up"}, {"up", "--strict"}} {
		d := s.Run(args...)
		if d.Code != 4 {
			t.Errorf("%v: exit code %d\n%s", args, d.Code, d.Err)
		}
		says(s, d, "[a.example.org, b.example.org]", "a worker may have written that (B8): it was replaced on this machine", "`workshop up --accept-watched=")
		exec := s.Run("exec", "worker", "--", "true")
		if exec.Code != 125 {
			t.Errorf("after %v the worker runs: %d", args, exec.Code)
		}
		says(s, exec, "a worker may have written what changed in workshop.yaml (B8): `workshop up --dry-run` shows it, and how to accept it")
	}
	says(s, s.Expect(0, "ps"), "a worker may have written what changed in workshop.yaml (B8): `workshop up --dry-run` shows it, and how to accept it")
	says(s, s.Expect(0, "up", "--dry-run"), "[a.example.org, b.example.org]", "`up` asks before it obeys that")
	s.Expect(0, "up", "--accept-watched")
	s.Expect(0, "firewall", "allow", "saved.example.org", "--save")
	s.Expect(0, "up", "--strict")
}
