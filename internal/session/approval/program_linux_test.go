package approval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/schemas"
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemas.Approval))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("x", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("x")
}

func fits(t *testing.T, line []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err == nil {
		err = schema(t).Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
}

// replies are what a program may print, and what becomes of it: a wish of
// anything else than an answer that was offered is none.
var replies = map[string]string{
	`{"answer":"once"}`: "", "{\"answer\": \"session\"}\n": "", `{"answer":"no"}`: "",
	"": "no answer", "yes": "can't be read", `{"answer":"yes"}`: "isn't one of", `{"answer":"Once"}`: "isn't one of", `{}`: "isn't one of",
	`{"answer":"once"}{"answer":"no"}`: "more than one", `{"answer":"once"} x`: "more than one", `{"answer":"always"}`: "isn't one of",
	`{"answer":"once","x":1}`: "can't be read", `["once"]`: "can't be read", `"once"`: "can't be read", `null`: "isn't one of",
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	q := question()
	q.Call.Args, q.Change = json.RawMessage(`{"command":"git push"}`), ""
	for reply, want := range replies {
		if err := os.WriteFile(filepath.Join(dir, "reply"), []byte(reply), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &Command{Argv: []string{"sh", "-c", "cat > asked; cat reply"}, Dir: dir}
		checkReply(t, reply, want, c, q)
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	fits(t, asked)
	wantLine := `{"type":"approval","version":1,"worker":"fixer","tool":"shell","chain":["reviewer"],"arguments":{"command":"git push"},"why":"no rule lets it pass","text":"git push\nin the directory: /x","rule":{"tool":"shell","match":"git push"},"answers":["no","once","session"]}` + "\n"
	if string(asked) != wantLine {
		t.Errorf("%s\nwant\n%s", asked, wantLine)
	}
}

func checkReply(t *testing.T, reply, want string, asker Asker, q Question) {
	t.Helper()
	answer, err := asker.Ask(t.Context(), q)
	switch {
	case want == "" && (err != nil || !strings.Contains(reply, string(answer)) || answer == ""):
		t.Errorf("%q: %q %v", reply, answer, err)
	case want != "" && (err == nil || answer != "" || !strings.Contains(err.Error(), want)):
		t.Errorf("%q: %q %v, want %s", reply, answer, err, want)
	}
}

// A program that says yes and fails, says too much, doesn't end, or isn't there
// is no yes.
func TestCommandFails(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		argv []string
		want string
	}{
		"exit code":   {[]string{"sh", "-c", `echo '{"answer":"once"}'; echo oh no >&2; exit 3`}, "exit status 3: oh no"},
		"signal":      {[]string{"sh", "-c", `echo '{"answer":"once"}'; kill -9 $$`}, "killed"},
		"too much":    {[]string{"sh", "-c", `echo '{"answer":"once"}'; head -c 100000 /dev/zero | tr '\0' ' '`}, "longer than"},
		"no end":      {[]string{"sh", "-c", `echo '{"answer":"once"}'; sleep 100`}, "no answer within"},
		"child holds": {[]string{"sh", "-c", `echo $$ > pid; sleep 100 & echo $! > child; wait`}, "no answer within"},
		"not there":   {[]string{"/nonexistent"}, "no such file"},
		"empty":       {nil, "empty"},
	} {
		began := testutil.Now()
		a, err := (&Command{Argv: c.argv, Dir: dir, Timeout: 500 * time.Millisecond}).Ask(t.Context(), question())
		if err == nil || a != "" || !strings.Contains(err.Error(), c.want) || testutil.Since(began) > 5*time.Second {
			t.Errorf("%s: %q %v after %s", name, a, err, testutil.Since(began))
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	// It was killed, which isn't over when the signal was sent.
	stat := func() string {
		s, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return string(s)
	}
	for began := testutil.Now(); stat() != "" && !strings.Contains(stat(), ") Z "); time.Sleep(5 * time.Millisecond) {
		if testutil.Since(began) > 10*time.Second {
			t.Errorf("what the program started still runs: %s", stat())
			syscall.Kill(pid, syscall.SIGKILL)
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := (&Command{Argv: []string{"true"}}).Ask(ctx, question()); err == nil || a != "" {
		t.Error(a, err)
	}
}

// listen serves one question at a time.
func listen(t *testing.T, serve func(net.Conn, []byte)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadBytes('\n')
			serve(c, line)
			c.Close()
		}
	}()
	return path
}

func TestSocket(t *testing.T) {
	q := question()
	q.Change = ""
	for reply, want := range replies {
		asked := make(chan []byte, 1)
		path := listen(t, func(c net.Conn, line []byte) {
			asked <- line
			c.Write([]byte(strings.TrimSuffix(reply, "\n") + "\n"))
		})
		checkReply(t, reply, want, &Socket{Path: path}, q)
		fits(t, <-asked)
	}
}

func TestSocketFails(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"hangs":    {listen(t, func(net.Conn, []byte) { <-end }), "no answer within"},
		"half":     {listen(t, func(c net.Conn, _ []byte) { c.Write([]byte(`{"answer":"on`)) }), "can't be read"},
		"closes":   {listen(t, func(net.Conn, []byte) {}), "without an answer"},
		"too long": {listen(t, func(c net.Conn, _ []byte) { c.Write(bytes.Repeat([]byte(" "), 1<<20)) }), "too long"},
		"no file":  {filepath.Join(dir, "none"), "no such file"},
		"a file":   {file, "not a socket"},
	} {
		began := testutil.Now()
		a, err := (&Socket{Path: c.path, Timeout: 500 * time.Millisecond}).Ask(t.Context(), question())
		if err == nil || a != "" || !strings.Contains(err.Error(), c.want) || testutil.Since(began) > 5*time.Second {
			t.Errorf("%s: %q %v after %s", name, a, err, testutil.Since(began))
		}
	}
	if os.Getuid() != 0 {
		return // the rest needs another user
	}
	path := listen(t, func(c net.Conn, _ []byte) { c.Write([]byte(`{"answer":"once"}` + "\n")) })
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if a, err := (&Socket{Path: path}).Ask(t.Context(), question()); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("%q %v", a, err)
	}
}
