package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
)

func TestSplitWorker(t *testing.T) {
	for _, c := range []struct {
		in, worker, file string
		ok               bool
	}{
		{"reviewer:/output", "reviewer", "/output", true},
		{"./a:b", "", "./a:b", false},
		{"/a:b", "", "/a:b", false},
		{"plain", "", "plain", false},
		{"-", "", "-", false},
		{"w:", "w", "", true},
	} {
		if worker, file, ok := splitWorker(c.in); worker != c.worker || file != c.file || ok != c.ok {
			t.Errorf("splitWorker(%q) = %q, %q, %v", c.in, worker, file, ok)
		}
	}
}

// What a worker's network needs is its own room and the guard.
func TestStopped(t *testing.T) {
	container := func(id, role, state, of string) engine.Container {
		return engine.Container{ID: id, Service: id, Role: role, State: state, NetworkOf: of}
	}
	w, closed := container("w", "worker", "running", "r"), container("c", "worker", "running", "")
	up, dead := container("r", "room", "running", ""), container("r", "room", "exited", "")
	guard := container("g", "guard", "running", "")
	for want, list := range map[string][]engine.Container{
		"":           {w, up, guard, closed, container("r2", "room", "exited", "")},
		"room":       {w, dead, guard},
		"guard":      {w, up, container("g", "guard", "exited", "")},
		"room guard": {w},
	} {
		seen := engine.Observed{Containers: list}
		if got := strings.Join(app.Stopped(seen, "w"), " "); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
		if got := strings.Join(app.Stopped(seen, ""), " "); got != want {
			t.Errorf("all of %v: %q, want %q", list, got, want)
		}
		if got := app.Stopped(seen, "c"); got != nil {
			t.Errorf("a worker without network: %q", got)
		}
	}
}

// TestInterrupts: the first signal cancels, the second ends the process, and
// a command that asked for them gets them instead.
func TestInterrupts(t *testing.T) {
	codes := make(chan int, 1)
	ctx, in := newInterrupts(t.Context(), func(code int) { codes <- code })
	defer in.stop()
	in.watch()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	names, done := in.Forward()
	self.Signal(syscall.SIGTERM)
	if got := <-names; got != "SIGTERM" {
		t.Errorf("forwarded %q", got)
	}
	done()
	self.Signal(os.Interrupt)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), app.ErrInterrupted) {
		t.Error(context.Cause(ctx))
	}
	self.Signal(os.Interrupt)
	if code := <-codes; code != app.CodeInterrupted {
		t.Errorf("exit %d", code)
	}
}

// TestSignalsThatNobodyTakes: a command that hangs before it takes a signal is
// ended by the second.
func TestSignalsThatNobodyTakes(t *testing.T) {
	codes := make(chan int, 1)
	_, in := newInterrupts(t.Context(), func(code int) { codes <- code })
	defer in.stop()
	in.watch()
	_, done := in.Forward()
	defer done()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for !in.hangs() {
		self.Signal(syscall.SIGTERM)
		time.Sleep(10 * time.Millisecond)
	}
	self.Signal(syscall.SIGTERM)
	select {
	case code := <-codes:
		if code != app.CodeInterrupted {
			t.Errorf("exit %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
}
