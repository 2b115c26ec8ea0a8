package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// The test binary is also the server: a real one, or one that misbehaves.
const roleVariable = "WORKSHOP_INSIDE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		serve(role)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// world is a server in a process of its own.
type world struct {
	*Server
	starts  atomic.Int32
	changed chan struct{}
	mu      sync.Mutex
	warned  []string
	seen    string
}

func open(t *testing.T, role string) *world {
	t.Helper()
	w := &world{changed: make(chan struct{}, 100), seen: filepath.Join(t.TempDir(), "seen")}
	w.Server = New(Config{Name: role, Client: "test", Start: func(context.Context) (*Process, error) {
		w.starts.Add(1)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), roleVariable+"="+role, "SEEN="+w.seen, "GORACE=atexit_sleep_ms=0")
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, out2, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		errs, errs2, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		cmd.Stdout, cmd.Stderr = out2, errs2
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		out2.Close()
		errs2.Close()
		wait := sync.OnceValue(cmd.Wait)
		return &Process{Stdin: in, Stdout: out, Stderr: errs, Wait: wait, End: func() { cmd.Process.Kill(); out.Close(); go wait() }}, nil
	}, Changed: func() { w.changed <- struct{}{} }, Warn: func(s string) {
		w.mu.Lock()
		w.warned = append(w.warned, s)
		w.mu.Unlock()
	}})
	t.Cleanup(w.Close)
	return w
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (w *world) names(t *testing.T) []string {
	t.Helper()
	tools, err := w.List(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, x := range tools {
		out = append(out, x.Name)
	}
	return out
}

func TestAServer(t *testing.T) {
	w := open(t, "real")
	if got := w.names(t); !slices.Contains(got, "echo") || len(got) != 7 {
		t.Fatalf("%q", got)
	}
	for _, x := range w.Known() {
		if x.Name == "echo" && (!x.ReadOnly || strings.Contains(x.Description, "\x1b") || !strings.Contains(string(x.InputSchema), `"text"`) || x.OutputSchema == nil) {
			t.Errorf("%+v", x)
		}
	}
	r, err := w.Call(soon(t), "echo", json.RawMessage(`{"text":"hi"}`), nil)
	if err != nil || r.Failed || string(r.Structured) != `{"large":7,"said":"hi"}` || len(r.Content) != 1 {
		t.Errorf("%+v %v", r, err)
	}
	var told []Progress
	r, err = w.Call(soon(t), "progress", json.RawMessage(`{}`), func(p Progress) { told = append(told, p) })
	if err != nil || string(r.Content[0]) != `{"type":"image","data":"cG5n","mimeType":"image/png"}` {
		t.Errorf("%s %v", r.Content, err)
	}
	if len(told) != 3 || told[2] != (Progress{"step", 3, 3}) {
		t.Errorf("%v", told)
	}
	for name, want := range map[string]string{"fail": "it went wrong", "nonsense": "nonsense"} {
		if r, err = w.Call(soon(t), name, json.RawMessage(`{}`), nil); err != nil || !r.Failed || !strings.Contains(string(r.Content[0]), want) {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

// What a server asks of the host is refused.
func TestAServerGetsNothing(t *testing.T) {
	w := open(t, "real")
	r, err := w.Call(soon(t), "ask", json.RawMessage(`{}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b struct{ Text string }
	json.Unmarshal(r.Content[0], &b)
	answers := strings.Split(b.Text, "\n")
	if len(answers) != 3 {
		t.Fatal(b.Text)
	}
	for _, a := range answers {
		if a == "<nil>" {
			t.Errorf("%q", answers)
		}
	}
}

func TestAServerThatEndsIsStartedAnew(t *testing.T) {
	w := open(t, "real")
	_, err := w.Call(soon(t), "die", json.RawMessage(`{}`), nil)
	var lost *LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "goodbye") {
		t.Error(err)
	}
	if _, err := w.Call(soon(t), "echo", json.RawMessage(`{"text":"x"}`), nil); err != nil || w.starts.Load() != 2 {
		t.Errorf("%v, %d starts", err, w.starts.Load())
	}
}

func TestAListThatChanges(t *testing.T) {
	w := open(t, "real")
	w.names(t)
	<-w.changed
	if r, err := w.Call(soon(t), "more", json.RawMessage(`{}`), nil); err != nil || string(r.Content[0]) != `{"type":"text","text":"[no content]"}` {
		t.Fatal(r, err)
	}
	select {
	case <-w.changed:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing has changed")
	}
	if got := w.names(t); !slices.Contains(got, "new") {
		t.Errorf("%q", got)
	}
}

func TestACallIsCancelled(t *testing.T) {
	w := open(t, "real")
	w.names(t)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := w.Call(ctx, "wait", json.RawMessage(`{}`), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	for begun := testutil.Now(); ; time.Sleep(5 * time.Millisecond) {
		if b, _ := os.ReadFile(w.seen); string(b) == "cancelled" {
			break
		}
		if testutil.Since(begun) > 5*time.Second {
			t.Fatal("the server wasn't told")
		}
	}
	if _, err := w.Call(soon(t), "echo", json.RawMessage(`{"text":"x"}`), nil); err != nil || w.starts.Load() != 1 {
		t.Errorf("%v", err)
	}
}

// Servers that misbehave are ended, within bounds, and the reason is told.
func TestServersThatMisbehave(t *testing.T) {
	for role, want := range map[string]string{
		"exits":   "exit status 3; it said last: no such option",
		"garbage": "not MCP to its standard output",
		"endless": "a line of more than 4194304 bytes",
		"asking":  "asks more than it reads",
		"silent":  "hasn't answered yet",
		"deep":    "nested deeper than 64",
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			w := open(t, role)
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			_, err := w.List(ctx)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
			if n := w.starts.Load(); n != 1 {
				t.Errorf("%d starts", n)
			}
		})
	}
}

func TestListsThatMisbehave(t *testing.T) {
	for role, want := range map[string]struct {
		tools int
		warn  string
	}{
		"huge":  {MaxTools, "more than 256 tools"},
		"pages": {0, "has more than"},
		"bad":   {1, "listed twice"},
		"notes": {1, ""},
		"worse": {0, "more than 256 tools that can't be offered"},
	} {
		t.Run(role, func(t *testing.T) {
			w := open(t, role)
			got := w.names(t)
			if len(got) != want.tools {
				t.Errorf("%d tools: %q", len(got), got)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if all := strings.Join(w.warned, "\n"); !strings.Contains(all, want.warn) {
				t.Errorf("%s", all)
			}
			if len(w.warned) > MaxTools+1 {
				t.Errorf("%d warnings", len(w.warned))
			}
			if role == "bad" {
				if len(w.warned) != len(badTools)-1 {
					t.Errorf("%d warnings: %q", len(w.warned), w.warned)
				}
				x := w.Known()[0]
				if len(x.Description) > MaxDescription || x.OutputSchema != nil {
					t.Errorf("%+v", x)
				}
			}
		})
	}
}

func TestAResultThatIsNone(t *testing.T) {
	w := open(t, "bad")
	if _, err := w.Call(soon(t), "good", json.RawMessage(`{}`), nil); err == nil || !strings.Contains(err.Error(), `no content of type \"video\"`) && !strings.Contains(err.Error(), "video") {
		t.Error(err)
	}
}

// A number that no float64 holds comes through.
func TestAResultComesAsItWasSent(t *testing.T) {
	w := open(t, "bad")
	r, err := w.Call(soon(t), "good", json.RawMessage(`{"a":"number"}`), nil)
	if err != nil || string(r.Structured) != `{"n":9007199254740993}` || string(r.Content[0]) != `{"type":"text","text":"{\"n\":9007199254740993}"}` {
		t.Errorf("%+v %v", r, err)
	}
}

func TestClose(t *testing.T) {
	w := open(t, "real")
	w.names(t)
	ended := make(chan error, 1)
	go func() {
		_, err := w.Call(soon(t), "wait", json.RawMessage(`{}`), nil)
		ended <- err
	}()
	time.Sleep(50 * time.Millisecond)
	w.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the call has an answer")
		}
	case <-time.After(5 * time.Second):
		t.Error("the call goes on")
	}
	if _, err := w.List(soon(t)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

var _ io.Writer = (*tail)(nil)
