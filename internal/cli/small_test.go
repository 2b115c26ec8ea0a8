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
	"github.com/llmdo/workshop/workshop"
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

func TestNumericUser(t *testing.T) {
	for user, want := range map[string]bool{
		"": true, "1000": true, "1000:1000": true, "bob": false, "1000:": false, ":1": false, "1:2:3": false, "-1": false, "4294967296": false,
	} {
		if numericUser(user) != want {
			t.Errorf("numericUser(%q) = %v", user, !want)
		}
	}
}

// A port is shown at the worker to which it leads.
func TestGivePorts(t *testing.T) {
	port := func(published, target uint16) workshop.Port {
		return workshop.Port{Published: workshop.Value[uint16]{V: published}, Target: workshop.Value[uint16]{V: target}}
	}
	w := &workshop.Workshop{Workers: []workshop.Worker{{Name: "web"}, {Name: "other"}}}
	w.Workers[0].Container.Ports = []workshop.Port{port(8443, 8080), port(9000, 9000)}
	entries := []psEntry{
		{Service: "guard", Role: "guard", Ports: []string{"127.0.0.1:18443->20002/tcp", "127.0.0.1:9000->20001/tcp", "[::1]:8443->20000/tcp"}},
		{Service: "other", Role: "worker"}, {Service: "web", Role: "worker"},
	}
	givePorts(entries, w)
	for i, want := range []string{"127.0.0.1:18443->20002/tcp", "", "[::1]:8443->8080/tcp 127.0.0.1:9000->9000/tcp"} {
		if got := strings.Join(entries[i].Ports, " "); got != want {
			t.Errorf("%s: %q, want %q", entries[i].Service, got, want)
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

// TestIsRoot keeps B4 on the way of exec --user.
func TestIsRoot(t *testing.T) {
	for user, want := range map[string]bool{
		"": false, "0": true, "00": true, "0:1000": true, "root": true, "root:x": true, "1000": false, "1000:0": false, "worker": false, "10": false,
	} {
		if isRoot(user) != want {
			t.Errorf("isRoot(%q) = %v", user, !want)
		}
	}
}

// TestIsReserved keeps the guard's uid its own on the way of exec --user.
func TestIsReserved(t *testing.T) {
	for user, want := range map[string]bool{
		"": false, "1000": false, "65530": false, "65532": true, "065532": true, "65531:1000": true, "1000:65532": true, "guard": false,
	} {
		if isReserved(user) != want {
			t.Errorf("isReserved(%q) = %v", user, !want)
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
