package docker

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

func TestExec(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	f.withoutDoors(t)
	run := func(t *testing.T, o engine.ExecOptions) (int, string, string, error) {
		t.Helper()
		var out, errOut bytes.Buffer
		o.Stdout, o.Stderr = &out, &errOut
		code, err := f.e.Exec(t.Context(), f.name, "one", o)
		return code, out.String(), errOut.String(), err
	}
	// The image's own program: the one of the tool volume can't be read, and a
	// signal finds no process of it (package execmark).
	fake := func(args ...string) []string { return append([]string{compose.ImageInit}, args...) }

	t.Run("output", func(t *testing.T) {
		code, out, errOut, err := run(t, engine.ExecOptions{Command: fake("say", "a", "b")})
		if code != 0 || err != nil || out != "a b\n" || errOut != "to stderr\n" {
			t.Errorf("%d, %v, %q, %q", code, err, out, errOut)
		}
	})
	t.Run("stdin", func(t *testing.T) {
		in := strings.Repeat("0123456789", 100_000)
		code, out, _, err := run(t, engine.ExecOptions{Command: fake("cat"), Stdin: strings.NewReader(in)})
		if code != 0 || err != nil || out != in {
			t.Errorf("%d, %v, %d bytes back of %d", code, err, len(out), len(in))
		}
	})
	t.Run("code", func(t *testing.T) {
		if code, _, _, err := run(t, engine.ExecOptions{Command: fake("exit", "42")}); code != 42 || err != nil {
			t.Errorf("%d, %v", code, err)
		}
	})
	t.Run("not found is 127", func(t *testing.T) {
		if code, out, errOut, err := run(t, engine.ExecOptions{Command: []string{"/no/such/program"}}); code != 127 || err != nil || out != "" || !strings.Contains(errOut, "/no/such/program") {
			t.Errorf("%d, %v, %q, %q", code, err, out, errOut)
		}
	})
	t.Run("not executable is 126", func(t *testing.T) {
		if code, out, errOut, err := run(t, engine.ExecOptions{Command: []string{"/etc/passwd"}}); code != 126 || err != nil || out != "" || !strings.Contains(errOut, "/etc/passwd") {
			t.Errorf("%d, %v, %q, %q", code, err, out, errOut)
		}
	})
	t.Run("terminal", func(t *testing.T) {
		code, out, errOut, err := run(t, engine.ExecOptions{Command: fake("say", "x"), TTY: true,
			Size: func() (uint, uint, bool) { return 24, 80, true }})
		if code != 0 || err != nil || errOut != "" || !strings.Contains(out, "x\r\n") || !strings.Contains(out, "to stderr") {
			t.Errorf("%d, %v, %q, %q", code, err, out, errOut)
		}
	})
	t.Run("signal", func(t *testing.T) {
		signals := make(chan string, 1)
		out := &waitFor{text: "trapping", then: func() { signals <- "SIGINT" }}
		code, err := f.e.Exec(t.Context(), f.name, "one", engine.ExecOptions{Command: fake("trap"), Stdout: out, Signals: signals})
		if code != 7 || err != nil || !strings.Contains(out.String(), "got interrupt") {
			t.Errorf("%d, %v, %q", code, err, out.String())
		}
	})
	t.Run("the end of the context kills it", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		out := &waitFor{text: "trapping", then: cancel}
		code, err := f.e.Exec(ctx, f.name, "one", engine.ExecOptions{Command: fake("trap"), Stdout: out})
		if code != exitOurs || !errors.Is(err, context.Canceled) {
			t.Errorf("%d, %v", code, err)
		}
		deadline := time.Now().Add(5 * time.Second)
		for {
			top, err := f.e.cli.ContainerTop(t.Context(), f.container(t, "one").ID, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(top.Processes) == 1 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("still running: %v", top.Processes)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	t.Run("nothing there", func(t *testing.T) {
		var nr *engine.NotRunningError
		if code, err := f.e.Exec(t.Context(), f.name, "nobody", engine.ExecOptions{Command: fake("say")}); code != exitOurs || !errors.As(err, &nr) {
			t.Errorf("%d, %v", code, err)
		}
	})
	t.Run("in workers only", func(t *testing.T) {
		for _, service := range []string{"room", "guard"} {
			if code, err := f.e.Exec(t.Context(), f.name, service, engine.ExecOptions{Command: fake("say")}); code != exitOurs || err == nil {
				t.Errorf("%s: %d, %v", service, code, err)
			}
		}
	})
	t.Run("logs", func(t *testing.T) {
		var out bytes.Buffer
		if err := f.e.Logs(t.Context(), f.name, nil, engine.LogsOptions{Stdout: &out, Prefix: true}); err != nil {
			t.Fatal(err)
		}
		if out.String() != "guard | READY\none   | READY\none   | hello from one\nroom  | READY\n" {
			t.Errorf("logs = %q", out.String())
		}
		ctx, cancel := context.WithCancel(t.Context())
		follow := &waitFor{text: "hello", then: cancel}
		if err := f.e.Logs(ctx, f.name, []string{"one"}, engine.LogsOptions{Stdout: follow, Follow: true}); err != nil {
			t.Errorf("follow: %v", err)
		}
	})
}

// waitFor calls then once when text was written.
type waitFor struct {
	bytes.Buffer
	text string
	then func()
}

func (w *waitFor) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.then != nil && strings.Contains(w.String(), w.text) {
		w.then()
		w.then = nil
	}
	return n, err
}

// B9: the worker sees the copy without what is excluded, and as it was when
// the worker was made; down takes it away.
func TestCopyMount(t *testing.T) {
	change := func(w *workshop.Workshop) {
		c := &w.Workers[0].Container
		c.Mounts = []workshop.Mount{{Source: value("data"), Target: value("/data"), Exclude: []string{".env", "**/*.pem"}}}
	}
	f := newFixture(t, func(w *workshop.Workshop) {}, "one")
	dir := writable(t, f, "data")
	for name, content := range map[string]string{".env": "secret", "a.txt": "first", "id.pem": "key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.compile(t, change, "one")
	f.up(t)
	read := func(name string) (string, int) {
		t.Helper()
		var out bytes.Buffer
		code, err := f.e.execIn(t.Context(), f.container(t, "one").ID, compose.InitPath, engine.ExecOptions{Command: []string{compose.InitPath, "read", "/data/" + name}, Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		return out.String(), code
	}
	if got, code := read("a.txt"); got != "first" || code != 0 {
		t.Errorf("a.txt: %q, %d", got, code)
	}
	for _, name := range []string{".env", "id.pem"} {
		if got, code := read(name); code == 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.up(t)
	if got, _ := read("a.txt"); got != "first" {
		t.Errorf("it changed below a running worker: %q", got)
	}
	f.down(t)
	f.up(t)
	if got, _ := read("a.txt"); got != "second" {
		t.Errorf("after down and up: %q", got)
	}
}
