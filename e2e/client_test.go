//go:build linux

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/client"
	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// Package client, in the process of its program: what it asks, and how it says
// what went wrong.
func TestClient(t *testing.T) {
	scenario.NotRootless(t, "the client is this process, which is root")
	s := scenario.At(t, "a Go program is asked about calls, and each thing that goes wrong has a type", callFiles())
	s.Env = append(s.Env, "HOME="+s.TempDir(), "XDG_STATE_HOME="+s.TempDir(), "XDG_CONFIG_HOME=")
	for _, e := range append(s.Program(t.Context(), "").Env, "WORKSHOP_FILE=", "WORKSHOP_PROJECT_NAME=") {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	ctx := t.Context()
	o := client.Options{Dir: s.Dir, Project: s.Project}
	if _, err := client.Open(ctx, o); !is[*client.NotUpError](err) || !strings.Contains(err.Error(), "workshop up") {
		t.Fatalf("not up: %T %v", err, err)
	}

	// Nobody to ask: refused. What only reads needs no yes.
	o.Up = true
	mute := open(t, o)
	write := map[string]any{"path": "/workspace/out/c.txt", "content": "by a program\n"}
	if _, err := mute.Call(ctx, "editor", "write_file", write); !is[*client.RefusedError](err) || s.Exists("out/c.txt") {
		t.Errorf("without Approve: %T %v", err, err)
	}
	r, err := mute.Call(ctx, "editor", "read_file", struct {
		Path string `json:"path"`
	}{"/workspace/src/a.txt"})
	var file struct{ Content string }
	if err != nil || r.Failed || r.Decode(&file) != nil || file.Content != "one\ntwo\nthree\n" || !strings.Contains(r.Text, "three") {
		t.Errorf("read_file: %+v %v", r, err)
	}
	if r, err := mute.Call(ctx, "editor", "read_file", map[string]string{"path": "/nowhere"}); err != nil || !r.Failed || r.Text == "" {
		t.Errorf("a tool that fails: %+v %v", r, err)
	}
	if _, err := mute.Call(ctx, "reader", "shell", nil); !is[*client.NotOfferedError](err) {
		t.Errorf("not offered: %T %v", err, err)
	}
	if _, err := mute.Call(ctx, "editor", "read_file", map[string]any{"path": 7}); !is[*client.ArgumentsError](err) {
		t.Errorf("arguments: %T %v", err, err)
	}
	if _, err := mute.Call(ctx, "nobody", "read_file", nil); err == nil {
		t.Error("a worker that isn't there answered")
	}
	if tools, err := mute.Tools(ctx, "reader"); err != nil || len(tools) != 1 || tools[0].Name != "read_file" || !tools[0].ReadOnly || len(tools[0].InputSchema) == 0 {
		t.Errorf("tools of reader: %+v %v", tools, err)
	}
	if w := mute.Workers(); len(w) != 2 || w[0].Name != "editor" || w[1].Instructions != "You read, and nothing else.\n" && w[1].Instructions != "You read, and nothing else." {
		t.Errorf("workers: %+v", w)
	}

	// Asked: no, once, session.
	answer, asked := client.Refuse, []client.Call(nil)
	o.Approve = func(_ context.Context, c client.Call) (client.Answer, error) {
		asked = append(asked, c)
		return answer, nil
	}
	w := open(t, o)
	if _, err := w.Call(ctx, "editor", "write_file", write); !is[*client.RefusedError](err) || s.Exists("out/c.txt") {
		t.Errorf("a no: %T %v", err, err)
	}
	if len(asked) != 1 || asked[0].Worker != "editor" || asked[0].Tool != "write_file" || !strings.Contains(asked[0].Text, "/workspace/out/c.txt") {
		t.Errorf("asked %+v", asked)
	}
	answer = client.Session
	for range 2 {
		if _, err := w.Call(ctx, "editor", "write_file", write); err != nil {
			t.Errorf("a yes: %v", err)
		}
	}
	if len(asked) != 2 || s.Read("out/c.txt") != "by a program\n" {
		t.Errorf("asked %d times, want 2", len(asked))
	}

	// The end of the context is the end of the call; a worker that dies is told.
	answer = client.Once
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	begun := testutil.Now()
	if _, err := w.Call(short, "editor", "shell", map[string]any{"argv": []string{"sleep", "60"}}); !errors.Is(err, context.DeadlineExceeded) || testutil.Since(begun) > 20*time.Second {
		t.Errorf("the end of the context: %v after %v", err, testutil.Since(begun))
	}
	lost := make(chan error, 1)
	go func() {
		_, err := w.Call(ctx, "editor", "shell", map[string]any{"argv": []string{"sleep", "876"}})
		lost <- err
	}()
	s.Eventually("the command runs", func() bool {
		return s.Run("exec", "editor", "--", "sh", "-c", `grep -zlx "87[6]" /proc/[0-9]*/cmdline 2>/dev/null | grep -q .`).Code == 0
	})
	s.Kill("editor", "SIGKILL")
	if err := <-lost; !is[*client.LostError](err) {
		t.Errorf("a worker that died: %T %v", err, err)
	}
	if _, err := w.Call(ctx, "editor", "read_file", map[string]string{"path": "/workspace/src/a.txt"}); !is[*client.NotUpError](err) {
		t.Errorf("a worker that is down: %T %v", err, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.Call(ctx, "reader", "read_file", nil); err == nil {
		t.Error("a closed workshop answered")
	}
}

func open(t *testing.T, o client.Options) *client.Workshop {
	t.Helper()
	w, err := client.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
