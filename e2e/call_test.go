//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
)

// callFiles are a workshop with a worker that has each tool, and its delegate.
// Without `approvals:`, what only reads in the worker needs no yes.
func callFiles() map[string]string {
	return map[string]string{
		"workshop.yaml": `workshop:
  name: call
  container:
    image: host
    network: {mode: restricted, allow: [allowed.example.org], dns: [198.51.100.53]}
    mounts:
      - ./src:/workspace/src
      - ./out:/workspace/out:rw
  workers:
    - editor
    - {name: reader, container: {network: none, mounts: ["./src:/workspace/src"]}}
`,
		"workers/editor.md": "---\nname: editor\ndescription: edits\ntools: Read, Write, Edit, LS, Grep, Bash, WebFetch\ndelegates-to: [reader]\n---\nYou edit.\n",
		"workers/reader.md": "---\nname: reader\ndescription: reads\ntools: Read\n---\nYou read, and nothing else.\n",
		"src/a.txt":         "one\ntwo\nthree\n",
		"out/.keep":         "",
	}
}

// callScenario has an audit log and settings of its own.
func callScenario(t *testing.T, intent string) *scenario.Scenario {
	t.Helper()
	s := scenario.At(t, intent, callFiles())
	s.Env = append(s.Env, "HOME="+s.TempDir(), "XDG_STATE_HOME="+s.TempDir(), "XDG_CONFIG_HOME=")
	return s
}

// Every tool by the command line: its text, its JSON, its failure, its code.
func TestCall(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := callScenario(t, "call runs each tool of a worker, prints what it answers, and ends with a code that says how it went")
	// The first call starts what isn't up, and says so on the standard error alone.
	first := s.Expect(0, "call", "editor", "read_file", "path=/workspace/src/a.txt", "first_line=2", "max_lines=1")
	if !strings.Contains(first.Out, "two") || strings.Contains(first.Out, "one") || strings.Contains(first.Out, "created") || !strings.Contains(first.Err, "starting") {
		t.Errorf("out %q\nerr %q", first.Out, first.Err)
	}
	for _, c := range []struct {
		args []string
		code int
		out  string // part of the standard output
		err  string // part of the standard error
	}{
		{args: []string{"write_file", "path=/workspace/out/b.txt", "content=x = 1\n"}, out: "b.txt"},
		{args: []string{"edit_file", "path=/workspace/out/b.txt", "old_string=1", "new_string=2"}, out: "b.txt"},
		{args: []string{"edit_file", "path=/workspace/out/b.txt", "old_string=none", "new_string=2"}, code: 1, err: "error: edit_file: "},
		{args: []string{"list_files", "path=/workspace/src"}, out: "a.txt"},
		{args: []string{"search_files", "pattern=^th", "path=/workspace/src"}, out: "three"},
		{args: []string{"fetch_url", "url=http://allowed.example.org/"}, out: "allowed.example.org"},
		{args: []string{"shell", "argv=cat", "argv=/workspace/out/b.txt"}, out: "x = 2\n"},
		{args: []string{"shell", "command=echo out; echo err >&2; exit 7"}, code: 7, out: "out\n", err: "err\n"},
		{args: []string{"shell", "command=kill -9 $$"}, code: 137, err: "SIGKILL"},
		{args: []string{"shell", "command=sleep 30", "timeout_seconds=0.3"}, code: 143, err: "00ms, by timeout_seconds of the call"},
		{args: []string{"shell", `{"argv": ["printf", "%s", "a b"], "env": {"A": "b"}}`}, out: "a b"},
		{args: []string{"shell", "command=echo $A", "env.A=given"}, out: "given\n"},
		{args: []string{"read_file", "path=/nowhere"}, code: 1, err: "error: read_file: "},
		{args: []string{"write_file", "path=/workspace/src/c.txt", "content="}, code: 1, err: "read-only"},
		{args: []string{"delegate_reader", "task=read a.txt"}, out: "You read, and nothing else."},
		{args: []string{"reed_file", "path=x"}, code: 4, err: `did you mean "read_file"?`},
		{args: []string{"read_file", "path=x", "max_lines=all"}, code: 2, err: "a whole number is needed"},
		{args: []string{"shell", "command=id", "argv=id"}, code: 2},
	} {
		d := s.Run(append([]string{"call", "--approve-all", "editor"}, c.args...)...)
		if d.Code != c.code || !strings.Contains(d.Out, c.out) || !strings.Contains(d.Err, c.err) {
			t.Errorf("%q: code %d, want %d with %q and %q\n%s%s", c.args, d.Code, c.code, c.out, c.err, d.Out, d.Err)
		}
		if d.Code != 0 && c.code != 7 && d.Out != "" {
			t.Errorf("%q failed, and stands on the standard output: %q", c.args, d.Out)
		}
	}
	// As JSON: the structured result and nothing else, also where it fails.
	var read struct {
		Content string
		Lines   int
	}
	d := s.Expect(0, "call", "--format", "json", "editor", "read_file", "path=/workspace/src/a.txt")
	if err := json.Unmarshal([]byte(d.Out), &read); err != nil || read.Lines != 3 {
		t.Errorf("%v: %s", err, d.Out)
	}
	d = s.Expect(7, "call", "--approve-all", "--format", "json", "editor", "shell", "command=exit 7")
	var ran struct {
		ExitCode int `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(d.Out), &ran); err != nil || ran.ExitCode != 7 {
		t.Errorf("%v: %s", err, d.Out)
	}
	d = s.Run("call", "--format", "json", "editor", "read_file", "path=/nowhere")
	if d.Code != 1 || !json.Valid([]byte(d.Out)) {
		t.Errorf("code %d: %s", d.Code, d.Out)
	}
	// Arguments through a pipe.
	cmd := s.Command(t.Context(), "call", "editor", "read_file", "-")
	cmd.Stdin = strings.NewReader(`{"path": "/workspace/src/a.txt", "max_lines": 1}`)
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "one") || strings.Contains(string(out), "two") {
		t.Errorf("%v: %s", err, out)
	}
	// What a delegate hasn't, it hasn't by call either.
	s.Expect(4, "call", "--approve-all", "reader", "shell", "argv=id")
}

// What needs a yes is asked on the terminal, also where the input is a pipe, and
// refused where there is none.
func TestCallAsks(t *testing.T) {
	scenario.Once(t, "nothing of it depends on who runs it")
	s := callScenario(t, "a call that needs a yes is asked on the terminal; a no, an end and nobody there are refusals")
	s.Up()
	write := []string{"call", "editor", "write_file", "path=/workspace/out/x.txt", "content=written"}
	written := func() bool { return s.Exists("out/x.txt") }

	none := s.Command(t.Context(), write...)
	none.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal controls it
	var text bytes.Buffer
	none.Stderr = &text
	if err := none.Run(); none.ProcessState.ExitCode() != 4 || !strings.Contains(text.String(), "B42") || written() {
		t.Errorf("without a terminal: %v, written: %v\n%s", err, written(), &text)
	}
	for _, c := range []struct {
		name, types string
		code        int
		yes         bool
	}{
		{"no", "n\r", 4, false},
		{"an empty line", "\r", 4, false},
		{"the end", "\x04", 4, false},
		{"Ctrl-C", "\x03", 130, false},
		{"yes", "y\r", 0, true},
	} {
		cmd := s.Command(t.Context(), write...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		code, text := answered(t, s, cmd, c.types)
		if code != c.code || written() != c.yes || !strings.Contains(text, "/workspace/out/x.txt") || strings.Contains(text, "[s]ession") {
			t.Errorf("%s: code %d, want %d; written: %v\n%s", c.name, code, c.code, written(), text)
		}
	}
	// The question comes on the terminal although the input is the arguments.
	line := s.Workshop() + ` call editor write_file - <<<'{"path": "/workspace/out/y.txt", "content": "piped"}' >/dev/null`
	cmd := s.Program(t.Context(), "/bin/bash", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if code, text := answered(t, s, cmd, "y\r"); code != 0 || !s.Exists("out/y.txt") {
		t.Errorf("piped: code %d\n%s", code, text)
	}
	// --strict asks nobody; what only reads needs no yes.
	s.Expect(4, "call", "--strict", "editor", "shell", "argv=id")
}

// answered runs a command on a terminal, types when it was asked, and gives its
// code and what it wrote.
func answered(t *testing.T, s *scenario.Scenario, cmd *exec.Cmd, types string) (int, string) {
	t.Helper()
	text, keys := onTerminal(t, cmd)
	s.Eventually("a person is asked", func() bool { return strings.Contains(text(), "[N]o: ") })
	time.Sleep(100 * time.Millisecond) // what is typed before the question counts for nothing
	if _, err := keys.WriteString(types); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		<-done
		t.Errorf("no end after %q", types)
	}
	time.Sleep(50 * time.Millisecond)
	return cmd.ProcessState.ExitCode(), text()
}

// Ctrl-C ends the call, and what it runs in the worker.
func TestCallInterrupted(t *testing.T) {
	s := callScenario(t, "Ctrl-C ends a call with 130, and its processes")
	s.Up()
	cmd := s.Command(context.Background(), "call", "--approve-all", "editor", "shell", "command=sleep 987; true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	runs := func() bool {
		return s.Run("exec", "editor", "--", "sh", "-c", `grep -zlx "98[7]" /proc/[0-9]*/cmdline 2>/dev/null | grep -q .`).Code == 0
	}
	s.Eventually("the command runs", runs)
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	s.Eventually("the command has ended", func() bool { return !runs() })
}

// rpc is a client of `workshop tools` that speaks MCP by hand.
type rpc struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   interface{ Write([]byte) (int, error) }
	out  *json.Decoder
	all  *bytes.Buffer // the whole standard output
	errs *bytes.Buffer
	end  func()
	next int
}

func newRPC(t *testing.T, s *scenario.Scenario, args ...string) *rpc {
	t.Helper()
	cmd := s.Command(context.Background(), append([]string{"tools"}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &rpc{t: t, cmd: cmd, in: in, all: &bytes.Buffer{}, errs: &bytes.Buffer{}, end: func() { _ = in.Close() }}
	cmd.Stderr = c.errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	c.out = json.NewDecoder(readAside{out, c.all})
	c.ask("initialize", `{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}`)
	fmt.Fprintln(c.in, `{"jsonrpc": "2.0", "method": "notifications/initialized"}`)
	return c
}

type readAside struct {
	r interface{ Read([]byte) (int, error) }
	b *bytes.Buffer
}

func (r readAside) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.b.Write(p[:n])
	return n, err
}

// ask sends a request and returns what answers it.
func (c *rpc) ask(method, params string) (answer struct {
	ID     int
	Result json.RawMessage
	Error  json.RawMessage
}) {
	c.t.Helper()
	c.next++
	fmt.Fprintf(c.in, `{"jsonrpc": "2.0", "id": %d, "method": %q, "params": %s}`+"\n", c.next, method, params)
	for {
		if err := c.out.Decode(&answer); err != nil {
			c.t.Fatalf("%s: %v\n%s\n%s", method, err, c.all, c.errs)
		}
		if answer.ID == c.next {
			return answer
		}
	}
}

// ended waits for the program's end.
func (c *rpc) ended() int {
	c.t.Helper()
	done := make(chan struct{})
	go func() { _ = c.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		c.t.Error("the server goes on without its client")
		_ = c.cmd.Process.Kill()
		<-done
	}
	return c.cmd.ProcessState.ExitCode()
}

// tools starts what isn't up, writes nothing but MCP to the standard output, and
// leaves the workshop up when its client goes, however that is.
func TestToolsStartsTheWorkshop(t *testing.T) {
	s := callScenario(t, "tools starts a workshop that isn't up, speaks nothing but MCP on the standard output, and leaves the workshop up")
	d := s.Expect(1, "tools", "--no-up", "editor")
	if d.Out != "" || !strings.Contains(d.Err, "is not up") {
		t.Errorf("--no-up: out %q err %q", d.Out, d.Err)
	}
	if d := s.Expect(1, "call", "--no-up", "editor", "read_file", "path=/workspace/src/a.txt"); d.Out != "" || !strings.Contains(d.Err, "is not up\nworkshop: hint: start it with `workshop up`") {
		t.Errorf("call --no-up: out %q err %q", d.Out, d.Err)
	}
	for name, end := range map[string]func(*rpc){
		"the end of the input": func(c *rpc) { c.end() },
		"SIGTERM":              func(c *rpc) { _ = c.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		c := newRPC(t, s, "editor")
		if a := c.ask("tools/list", `{}`); !strings.Contains(string(a.Result), `"read_file"`) {
			t.Errorf("tools: %s %s", a.Result, a.Error)
		}
		a := c.ask("tools/call", `{"name": "read_file", "arguments": {"path": "/workspace/src/a.txt"}}`)
		if !strings.Contains(string(a.Result), "three") {
			t.Errorf("read_file: %s %s\n%s", a.Result, a.Error, c.errs)
		}
		// The client can't ask: refused, and said so to the model.
		a = c.ask("tools/call", `{"name": "write_file", "arguments": {"path": "/workspace/out/n.txt", "content": "x"}}`)
		if !strings.Contains(string(a.Result), "was not approved: ") || s.Exists("out/n.txt") {
			t.Errorf("write_file: %s %s", a.Result, a.Error)
		}
		end(c)
		if code := c.ended(); code != 0 {
			t.Errorf("%s: exit code %d\n%s", name, code, c.errs)
		}
		for line := range strings.Lines(c.all.String()) {
			if !json.Valid([]byte(line)) || !strings.Contains(line, `"jsonrpc"`) {
				t.Errorf("not MCP on the standard output: %q", line)
			}
		}
		if state := s.Containers()["editor"].State; state != "running" {
			t.Errorf("%s: editor is %q", name, state)
		}
	}
}

// A start that fails says the words of up, and the server ends with its code when the
// client goes.
func TestToolsThatCantStart(t *testing.T) {
	s := callScenario(t, "tools says the error of up on the standard error where the workshop can't be started, and ends with its code when the client goes")
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "image: host", "image: registry.example.org/none:1\n    pull: never", 1))
	c := newRPC(t, s, "editor")
	if text, _ := answerOf(t, c.ask("tools/call", `{"name": "list_files", "arguments": {}}`).Result); text != notReached {
		t.Errorf("the model is told %q", text)
	}
	c.end()
	if code := c.ended(); code != 5 || strings.Count(c.errs.String(), "workshop: warning: image registry.example.org/none:1") != 1 {
		t.Errorf("code %d\n%s", code, c.errs)
	}
}

// Warnings of a file are said by the up that is its first, by that after a change,
// and by a call that starts the workshop; not with each command. That a worker has no
// network is told where nobody wrote that.
func TestWarningsAreSaidOnce(t *testing.T) {
	scenario.Once(t, "the command line says them, whoever runs it")
	const warned = "the network is open"
	text := "workshop:\n  name: warns\n  container:\n    image: host\n    network: open\n  workers: [one, {name: two, container: {network: none}}]\n"
	worker := "---\ndescription: Reads\nallowed-tools: Read, LS\n---\nRead.\n"
	s := scenario.At(t, "the warnings of a file are said where the file is new", map[string]string{"workshop.yaml": text, "workers/one.md": worker, "workers/two.md": worker})
	command := func(says bool, args ...string) {
		t.Helper()
		if d := s.Expect(0, args...); strings.Contains(d.Out+d.Err, warned) != says {
			t.Errorf("%q, want a warning: %v\n%s%s", args, says, d.Out, d.Err)
		}
	}
	call := []string{"call", "one", "list_files", "path=/"}
	command(true, call...)
	command(false, call...)
	command(true, "compile")
	command(true, "config")
	command(false, "up")
	command(false, "firewall", "suggest")
	command(false, "firewall", "reload")
	command(false, "firewall", "show")
	s.Write("workshop.yaml", text+"# changed\n")
	command(false, call...)
	command(true, "firewall", "reload")
	command(true, "up")
	command(false, "up")
	s.Expect(0, "down")
	if d := s.Expect(0, "up"); !strings.Contains(d.Err, warned) || strings.Contains(d.Err, "without network") {
		t.Errorf("the first up:\n%s", d.Err)
	}
	s.Write("workshop.yaml", strings.ReplaceAll(strings.Replace(text, "    network: open\n", "", 1), "{network: none}", "{}"))
	if d := s.Expect(0, "up"); !strings.Contains(d.Err, "one and two are without network; to open names") {
		t.Errorf("nobody wrote that they have no network:\n%s", d.Err)
	}
}

// What was changed since up is said, and what runs is what counts; a worker that
// misses is started alone.
func TestToolsAfterAChange(t *testing.T) {
	scenario.Once(t, "nothing of it depends on who runs it")
	s := callScenario(t, "what changed since up is said; of a workshop that is up in part, the workers that are needed are started")
	s.Up("reader")
	s.Expect(0, "call", "reader", "read_file", "path=/workspace/src/a.txt")
	if _, ok := s.Containers()["editor"]; ok {
		t.Error("reader's call started editor")
	}
	s.Expect(0, "call", "editor", "read_file", "path=/workspace/src/a.txt")
	if state := s.Containers()["editor"].State; state != "running" {
		t.Errorf("editor is %q", state)
	}
	if d := s.Run("call", "reader", "read_file", "path=/workspace/src/a.txt"); strings.Contains(d.Err, "changed") {
		t.Errorf("nothing changed:\n%s", d.Err)
	}
	s.Write("out/.vscode/settings.json", "{}") // `up` would mount it over itself
	if d := s.Expect(0, "call", "editor", "read_file", "path=/workspace/src/a.txt"); !strings.Contains(d.Err, "workshop: warning: editor is to change (read-only: + /workspace/out/.vscode): the running workshop is out of date\n") {
		t.Errorf("a directory was made that is held:\n%s", d.Err)
	}
	s.Write("workers/reader.md", strings.Replace(s.Read("workers/reader.md"), "tools: Read", "tools: Read, LS", 1))
	d := s.Run("call", "reader", "list_files", "path=/workspace/src")
	if d.Code != 4 || !strings.Contains(d.Err, "workshop: warning: workers/reader.md changed since `up`: the running workshop is out of date") || !strings.Contains(d.Err, "`workshop up`") {
		t.Errorf("code %d\n%s", d.Code, d.Err)
	}
	s.Up()
	s.Expect(0, "call", "reader", "list_files", "path=/workspace/src")
}

// The program of docs/go.md does what the document says.
func TestClientExample(t *testing.T) {
	scenario.Once(t, "nothing of it depends on who runs it")
	s := scenario.Example(t, "hello", "a Go program uses a workshop by package client")
	goExample(s, "client", "docs/go.md")
}

// TestPolicyClientExample: the policy of a running workshop is shown and changed from Go.
func TestPolicyClientExample(t *testing.T) {
	scenario.Once(t, "nothing of it depends on who runs it")
	s := scenario.Example(t, "policy-client", "a Go program changes what a worker may reach by package client")
	goExample(s, "policy-client", "docs/api.md")
}

// goExample runs a program of the examples in a workshop, and compares what it prints with
// the page that shows it.
func goExample(s *scenario.Scenario, name, page string) {
	s.Helper()
	s.Env = append(s.Env, "HOME="+s.TempDir(), "XDG_STATE_HOME="+s.TempDir(), "XDG_CONFIG_HOME=")
	program := filepath.Join(s.TempDir(), name)
	build := exec.Command("go", "build", "-o", program, "./examples/"+name)
	build.Dir = s.Root
	if out, err := build.CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
	cmd := s.Program(s.Context(), program, s.Dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	doc, readErr := os.ReadFile(filepath.Join(s.Root, page))
	if err != nil || readErr != nil || !strings.Contains(string(doc), "It prints:\n\n```\n"+string(out)+"```\n") {
		s.Errorf("%v %v, it printed\n%s\n%s", err, readErr, out, &errs)
	}
}
