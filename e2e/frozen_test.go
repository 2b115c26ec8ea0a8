//go:build linux

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
)

func TestB60_StoppedExecFreezesNoCommand(t *testing.T) {
	scenario.OnlyDocker(t, "elsewhere the engine starts nothing in a worker")
	s, in, _ := escapes(t, "a worker stops what the engine starts in it, for which the engine waits for ever: our commands end, and down removes it")
	s.Up()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stopper := s.Command(ctx, "exec", "-T", "worker", "--", in, "probe", "stop-started")
	if err := stopper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stopper.Process.Kill(); _ = stopper.Wait() }()
	id, namespace := s.Inspect("worker").ID, s.NamespaceOf("worker", "pid") // later the engine may not answer
	// Whatever the product does, the engine is free when the test ends.
	defer func() {
		for pid := range stoppedIn(namespace) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	// Somebody's own exec, again and again until one is stopped on its way.
	frozen := false
	for range 20 {
		one, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := s.Program(one, "docker", "exec", id, "/bin/true").Run()
		cancel()
		if frozen = err != nil && one.Err() == context.DeadlineExceeded && len(stoppedIn(namespace)) > 0; frozen {
			break
		}
	}
	if !frozen {
		t.Fatal("control: no exec was stopped: this shows nothing")
	}
	// Our own way in isn't the engine's. They come at once, as each waits for the
	// engine a few times.
	var all sync.WaitGroup
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"ps"}, "worker"},
		{[]string{"logs", "worker"}, ""},
		{[]string{"exec", "-T", "worker", "--", "true"}, ""},
		{[]string{"cp", "worker:/workspace/in/a.txt", "-"}, ""},
		{[]string{"up"}, ""},
	} {
		all.Go(func() {
			d := s.Run(c.args...)
			if d.Counted > 20*time.Second || !strings.Contains(d.Out, c.says) {
				t.Errorf("%v: %v\n%s%s", c.args, d.Took, d.Out, d.Err)
			}
			if d.Code != 0 && !strings.Contains(d.Err, "workshop down") {
				t.Errorf("%v: code %d, and not what to do:\n%s", c.args, d.Code, d.Err)
			}
		})
	}
	all.Wait()
	if d := s.Expect(0, "down"); d.Counted > 20*time.Second {
		t.Errorf("down took %v", d.Took)
	}
	if left := s.Leftovers(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestB60_CopyOfWhatIsExchanged(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s, in, _ := escapes(t, "cp out of a worker ends where a file is exchanged for a FIFO meanwhile, and nothing of the worker hangs afterwards")
	s.Up()
	exchanger := s.Command(t.Context(), "exec", "-T", "worker", "--", in, "probe", "exchange-fifo /workspace/out/x")
	if err := exchanger.Start(); err != nil {
		t.Fatal(err)
	}
	s.Eventually("there is a FIFO", func() bool { return s.Run("exec", "worker", "--", "test", "-e", "/workspace/out/x.fifo").Code == 0 })
	// Whatever the product does, the engine is free when the test ends.
	defer func() {
		for _, name := range []string{"x", "x.fifo"} {
			if f, err := os.OpenFile(filepath.Join(s.Dir, "out", name), os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
				defer f.Close()
			}
		}
	}()
	exchanged := make(chan error, 1)
	go func() { exchanged <- exchanger.Wait() }()
	copies := 0
	for ; len(exchanged) == 0; copies++ {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		cmd := s.Command(ctx, "cp", "worker:/workspace/out", "-")
		_ = cmd.Run() // what it says of a file that was exchanged is no matter
		ended := ctx.Err() == nil
		cancel()
		if !ended {
			t.Fatal("cp hangs")
		}
	}
	if err := <-exchanged; err != nil || copies < 2 {
		t.Errorf("control: %d copies while files were exchanged: %v", copies, err)
	}
	if d := s.Expect(0, "cp", "worker:/workspace/in/a.txt", "-"); !strings.Contains(d.Out, "in\n") {
		t.Errorf("a file: %q", d.Out)
	}
	// What is in memory alone is reached too, both ways.
	s.Expect(0, "cp", s.Dir+"/in/a.txt", "worker:/scratch/b.txt")
	if d := s.Expect(0, "exec", "--quiet", "worker", "--", "cat", "/scratch/b.txt"); d.Out != "in\n" {
		t.Errorf("in memory: %q", d.Out)
	}
	s.Expect(0, "cp", "worker:/scratch/b.txt", s.Dir+"/back.txt")
	if got := s.Read("back.txt"); got != "in\n" {
		t.Errorf("back: %q", got)
	}
}

// stoppedIn gives the processes of a PID namespace that are stopped.
func stoppedIn(namespace string) map[int]bool {
	stopped := map[int]bool{}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, link := range links {
		if name, err := os.Readlink(link); err != nil || name != namespace {
			continue
		}
		dir := filepath.Dir(filepath.Dir(link))
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if _, rest, ok := strings.Cut(string(stat), ") "); err == nil && ok && strings.HasPrefix(rest, "T") {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			stopped[pid] = true
		}
	}
	return stopped
}
