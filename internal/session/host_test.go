package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/tool"
)

func must(t *testing.T, h *Host, name string, pairs ...any) *Result {
	t.Helper()
	r, err := h.Call(context.Background(), name, args(pairs...), Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r.Failed {
		t.Fatalf("%s failed: %s", name, textOf(r))
	}
	return r
}

func fails(t *testing.T, h *Host, name string, pairs ...any) error {
	t.Helper()
	r, err := h.Call(context.Background(), name, args(pairs...), Options{})
	if err == nil {
		t.Fatalf("%s wasn't refused: %s", name, textOf(r))
	}
	return err
}

func TestCallRunsACommand(t *testing.T) {
	h, _ := one(t, "allowed-tools: Bash")
	for _, c := range []struct{ line, want string }{
		{"echo hello", "hello\n"},
		{"echo out; echo err >&2; exit 3", "out\n[stderr]\nerr\n[exit code 3]"},
		{"true", "[exit code 0, no output]"},
		{"kill -9 $$", "[ended by SIGKILL]"},
	} {
		if got := textOf(must(t, h, "shell", "command", c.line)); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
	r := must(t, h, "shell", "argv", []string{"printf", "%s", "a  b"})
	if want := `"text":"a  b"`; !strings.Contains(string(r.Structured), want) {
		t.Errorf("%s has no %s", r.Structured, want)
	}
}

// B41: what isn't offered is refused before anything is sent.
func TestWhatIsNotOfferedIsNotSent(t *testing.T) {
	h, w := one(t, "allowed-tools: Bash(git:*)")
	for name, a := range map[string][]any{
		"read_file":    {"path", "x"},
		"nonsense":     {},
		"w__shell":     {"command", "git"},
		"mcp__a__b":    {},
		"shell":        {"argv", []string{"sh", "-c", "git"}},
		"delegate_w":   {"task", "x"},
		"delegate_you": {"task", "x"},
	} {
		err := fails(t, h, name, a...)
		var no *tool.NotOfferedError
		if !errors.As(err, &no) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, line := range []string{"git log; rm -rf x", "git log && true", "git $X", "X=1 git log", "git log > x", "rm x", "git `id`", "git *"} {
		var no *tool.NotOfferedError
		if err := fails(t, h, "shell", "command", line); !errors.As(err, &no) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if n := w.dials.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestALimitedShellTakesOnePlainCommand(t *testing.T) {
	h, _ := one(t, "allowed-tools: Bash(echo:*)")
	if got := textOf(must(t, h, "shell", "command", `echo "a  b" 'c$d'`)); got != "a  b c$d\n" {
		t.Errorf("%q", got)
	}
	tools, err := h.Tools(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if want := "those that begin with `echo`"; len(tools) != 1 || !strings.Contains(tools[0].Description, want) {
		t.Errorf("%+v doesn't say %s", tools, want)
	}
}

func TestAllProblemsOfArgumentsAreTold(t *testing.T) {
	h, w := one(t, "allowed-tools: Bash, Read")
	err := fails(t, h, "shell", "argv", []any{"a", 1}, "max_output_bytes", 1e9, "timeout_seconds", -1, "cwd", nil, "other", true, "command", "x")
	var bad *ArgumentsError
	if !errors.As(err, &bad) {
		t.Fatal(err)
	}
	for _, want := range []string{"argv[1] must be a string, not an integer", "max_output_bytes is 1000000000, more than 4194304", "timeout_seconds is -1", "cwd must be a string, not null", `no argument "other"`, "not both"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoesn't say %q", err, want)
		}
	}
	if err := fails(t, h, "read_file"); !strings.Contains(err.Error(), "path is missing") {
		t.Error(err)
	}
	if n := w.dials.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// B42: what isn't approved isn't executed.
func TestWhatIsNotApprovedIsNotExecuted(t *testing.T) {
	ws := aWorkshop(t, "", "w", "allowed-tools: Bash")
	w := startWorker(t, grantOf(ws, "w"))
	h := openHost(t, Config{Workshop: ws, Dial: w.dial, Gate: &approval.Gate{}}, "w") // asks, and nobody is there
	err := fails(t, h, "shell", "command", "echo x >> f")
	var refused *approval.RefusedError
	if !errors.As(err, &refused) {
		t.Error(err)
	}
	if got := w.file("f"); got != "" {
		t.Errorf("it was executed: %q", got)
	}
}

// What the running worker was given and what its file lists now: only what both
// have is offered.
func TestOnlyWhatFileAndWorkerHave(t *testing.T) {
	ws := aWorkshop(t, "", "w", "allowed-tools: Bash(echo:*), Read, Grep")
	g := grantOf(ws, "w")
	g.Tools = []tool.Offer{{Name: tool.Shell, Limit: "echo hello:*"}, {Name: tool.ReadFile}, {Name: tool.WriteFile}}
	w := startWorker(t, g)
	var warned []string
	h := openHost(t, Config{Workshop: ws, Dial: w.dial, Warn: func(s string) { warned = append(warned, s) }}, "w")
	for range 2 {
		tools, err := h.Tools(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, t := range tools {
			names = append(names, t.Name)
		}
		if got := strings.Join(names, " "); got != "read_file shell" {
			t.Errorf("offered are %s", got)
		}
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "workshop up") {
		t.Errorf("warnings: %q", warned)
	}
	must(t, h, "shell", "command", "echo hello you")
	for _, line := range []string{"echo you", "cat x"} {
		fails(t, h, "shell", "command", line)
	}
	fails(t, h, "write_file", "path", "x", "content", "x")

	// The same in the first call, and nobody is asked about it.
	h = openHost(t, Config{Workshop: ws, Dial: w.dial, Gate: &approval.Gate{}}, "w")
	var no *tool.NotOfferedError
	if err := fails(t, h, "shell", "command", "echo you"); !errors.As(err, &no) {
		t.Error(err)
	}
}

func TestCancelEndsTheCommand(t *testing.T) {
	h, w := one(t, "allowed-tools: Bash")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		w.wait("begun", "\n")
		cancel()
	}()
	_, err := h.Call(ctx, "shell", args("command", "echo x > begun; sleep 1; echo x > end"), Options{})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, h, "shell", "command", "true") // the session is still good
	if n := w.dials.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	time.Sleep(1200 * time.Millisecond)
	if w.file("end") != "" {
		t.Error("the command went on")
	}
}

// A worker that is restarted, and a session that is killed, in mid-call.
func TestLost(t *testing.T) {
	const restarted = "shell of w was lost: the worker was restarted, and files in /tmp, /scratch and its home directory, and processes in the background, are gone. It may have run, in whole or in part: look at what it did before you call it again"
	for what, want := range map[string]string{"worker": restarted, "a worker that still takes sessions": restarted, "session": "The worker itself runs on"} {
		t.Run(what, func(t *testing.T) {
			h, w := one(t, "allowed-tools: Bash")
			ended := make(chan error, 1)
			go func() {
				_, err := h.Call(context.Background(), "shell", args("command", "echo x >> f; echo $PPID > begun; sleep 60"), Options{})
				ended <- err
			}()
			w.wait("begun", "\n")
			if what != "worker" {
				kill(t, w)
			}
			if what != "session" {
				time.Sleep(50 * time.Millisecond) // no longer than PID 1 waits for the others
				w.stop()
				w.start()
			}
			err := <-ended
			var lost *LostError
			if !errors.As(err, &lost) || !strings.Contains(err.Error(), want) || lost.Tool != "shell" || lost.Worker != "w" {
				t.Errorf("%v", err)
			}
			if got := textOf(must(t, h, "shell", "command", "true")); strings.Contains(got, "restarted") {
				t.Errorf("it is told twice: %s", got)
			}
			if got := w.file("f"); got != "x\n" {
				t.Errorf("executed: %q", got)
			}
		})
	}
}

// A restart between two calls is told with the next, once.
func TestRestartIsTold(t *testing.T) {
	h, w := one(t, "allowed-tools: Bash, Read")
	must(t, h, "shell", "command", "echo x > f")
	for _, c := range []struct {
		name string
		args []any
	}{{"shell", []any{"command", "true"}}, {"read_file", []any{"path", "f"}}} {
		w.stop()
		w.start()
		const want = "[The worker was restarted since the last call: files in /tmp, /scratch and its home directory, and processes in the background, are gone.]"
		if got := textOf(must(t, h, c.name, c.args...)); strings.Count(got, want) != 1 {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
		if got := textOf(must(t, h, c.name, c.args...)); strings.Contains(got, "restarted") {
			t.Errorf("%s: it is told twice: %q", c.name, got)
		}
	}
}

// A worker that was started with other tools: the next call is of those, as the next
// list is, and a change is announced once.
func TestACallIsOfWhatIsListed(t *testing.T) {
	ws := aWorkshop(t, "", "w", "allowed-tools: Bash, Read")
	all := grantOf(ws, "w")
	w := startWorker(t, all)
	changed := 0
	h := openHost(t, Config{Workshop: ws, Dial: w.dial, Changed: func() { changed++ }}, "w")
	must(t, h, "shell", "command", "true")
	restart := func(g tool.Grant) {
		w.stop()
		w.grant = g
		w.start()
	}
	less := all
	less.Tools = []tool.Offer{{Name: tool.ReadFile}}
	restart(less)
	var no *tool.NotOfferedError
	if err := fails(t, h, "shell", "command", "true"); !errors.As(err, &no) || len(no.Offered) != 1 || changed != 1 {
		t.Errorf("without shell: %v, %d changes", err, changed)
	}
	restart(all)
	must(t, h, "shell", "command", "true")
	if changed != 2 {
		t.Errorf("%d changes", changed)
	}
	restart(less)
	if list, err := h.Tools(context.Background()); err != nil || len(list) != 1 || changed != 3 {
		t.Errorf("%v, %v, %d changes", list, err, changed)
	}
}

// kill ends the session's process, found by its name in the worker's namespace.
func kill(t *testing.T, w *aWorker) {
	t.Helper()
	w.mu.Lock()
	pid := w.cmd.Process.Pid
	w.mu.Unlock()
	for _, child := range childrenOf(t, pid) {
		p, err := os.FindProcess(child)
		if err != nil {
			t.Fatal(err)
		}
		p.Kill()
	}
}

func TestCloseEndsWhatRuns(t *testing.T) {
	h, w := one(t, "allowed-tools: Bash")
	must(t, h, "shell", "command", "(sleep 1; echo x > late) >/dev/null 2>&1 &")
	h.Close()
	if _, err := h.Call(context.Background(), "shell", args("command", "true"), Options{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	time.Sleep(1200 * time.Millisecond)
	if w.file("late") != "" {
		t.Error("what was left in the background went on")
	}
}

func isUnreachable(err error) bool {
	_, ok := errors.AsType[*UnreachableError](err)
	return ok
}

func TestAWorkerThatIsNotThere(t *testing.T) {
	h, w := one(t, "allowed-tools: Bash")
	w.stop()
	if err := fails(t, h, "shell", "command", "true"); !isUnreachable(err) || !strings.Contains(err.Error(), "the worker w can't be reached: ") {
		t.Error(err)
	}
	tools, err := h.Tools(context.Background())
	if err != nil || len(tools) != 1 {
		t.Errorf("%v, %v", tools, err)
	}
	w.start()
	must(t, h, "shell", "command", "true")
}

func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/" + itoa(pid) + "/task/*/children")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	var out []int
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, field := range strings.Fields(string(b)) {
			out = append(out, atoi(field))
		}
	}
	return out
}

// What a worker says is warned of once, and not without an end.
func TestWarningsAreBounded(t *testing.T) {
	ws := aWorkshop(t, "", "w", "allowed-tools: Read")
	n, last := 0, ""
	h := openHost(t, Config{Workshop: ws, Dial: startWorker(t, grantOf(ws, "w")).dial, Warn: func(s string) { n++; last = s }}, "w")
	for i := range 3 * maxWarnings {
		h.warn("tool %d", i/2)
	}
	if n != maxWarnings+1 || !strings.Contains(last, "too many") || len(h.warned) != n {
		t.Errorf("%d warnings, %d kept, the last: %s", n, len(h.warned), last)
	}
}
