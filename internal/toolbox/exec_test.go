//go:build linux

package toolbox

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// exec runs a program to its end.
func (c *client) exec(e Exec, stdin string) (exit Exit, stdout, stderr string, err error) {
	c.t.Helper()
	o, err := c.Start(within(c.t, 20*time.Second), "exec", e)
	if err != nil {
		c.t.Fatal(err)
	}
	var wg sync.WaitGroup
	var out [3]bytes.Buffer
	for n := byte(wire.Stdout); n <= wire.Stderr; n++ {
		wg.Go(func() { io.Copy(&out[n], o.Stream(n)) })
	}
	if e.Stdin {
		in := o.Stream(wire.Stdin)
		go func() { io.Copy(in, strings.NewReader(stdin)); in.Close() }()
	}
	err = o.Wait(&exit)
	wg.Wait()
	return exit, out[1].String(), out[2].String(), err
}

func TestExec(t *testing.T) {
	c := open(t, &tool.Grant{}).session(RoleExec) // a person needs no grant
	big := strings.Repeat("0123456789abcdef", 1<<18)
	for _, test := range []struct {
		name      string
		e         Exec
		stdin     string
		out, errs string
		want      Exit
	}{
		{name: "streams", e: Exec{Argv: []string{"sh", "-c", "echo o; echo e >&2; exit 7"}}, out: "o\n", errs: "e\n", want: Exit{Code: 7}},
		{name: "stdin", e: Exec{Argv: []string{"cat"}, Stdin: true}, stdin: big, out: big},
		{name: "no stdin", e: Exec{Argv: []string{"cat"}}},
		{name: "stdin that nobody reads", e: Exec{Argv: []string{"true"}, Stdin: true}, stdin: big},
		{name: "env and cwd", e: Exec{Argv: []string{"sh", "-c", "echo $COLOR $X $PWD"}, Env: []string{"X=1", "COLOR=a=b"}, Cwd: "/usr"}, out: "a=b 1 /usr\n"},
		{name: "a signal", e: Exec{Argv: []string{"sh", "-c", "kill -9 $$"}}, want: Exit{Code: 137, Signal: "SIGKILL"}},
		{name: "closes its streams and goes on", e: Exec{Argv: []string{"sh", "-c", "exec >&- 2>&- <&-; sleep 0.2; exit 4"}}, want: Exit{Code: 4}},
		{name: "no mark of a tool", e: Exec{Argv: []string{"sh", "-c", "env | grep WORKSHOP_CALL"}}, want: Exit{Code: 1}},
	} {
		exit, out, errs, err := c.exec(test.e, test.stdin)
		if err != nil || exit != test.want || out != test.out || errs != test.errs {
			t.Errorf("%s: %v %+v, %d bytes %.40q, %.40q", test.name, err, exit, len(out), out, errs)
		}
	}
	for _, test := range []struct {
		e    Exec
		code int
		says string
	}{
		{Exec{}, wire.CodeInvalidParams, "argv is missing"},
		{Exec{Argv: []string{}}, wire.CodeInvalidParams, "argv is empty"},
		{Exec{Argv: []string{"x"}, Env: []string{"NAME"}}, wire.CodeInvalidParams, "NAME=VALUE"},
		{Exec{Argv: []string{"no-such-program"}}, wire.CodeNotFound, "no such program"},
		{Exec{Argv: []string{"/etc/passwd"}}, wire.CodeNotExecutable, "permission denied"},
		{Exec{Argv: []string{"/etc"}}, wire.CodeNotExecutable, "directory"},
		{Exec{Argv: []string{"true"}, Cwd: "/nowhere"}, wire.CodeInvalidParams, "cwd /nowhere: there is no such directory"},
	} {
		_, _, _, err := c.exec(test.e, "")
		wants(t, err, test.code, test.says)
	}
}

func TestExecSignals(t *testing.T) {
	c := open(t, &tool.Grant{}).session(RoleExec)
	o, err := c.Start(within(t, 20*time.Second), "exec", Exec{Argv: []string{"sh", "-c", "trap 'echo got; exit 5' INT; sleep 0.01; echo ready; while :; do sleep 0.01; done"}})
	if err != nil {
		t.Fatal(err)
	}
	out := o.Stream(wire.Stdout)
	b := make([]byte, 6)
	if _, err := io.ReadFull(out, b); err != nil {
		t.Fatal(err)
	}
	o.Notify("$/signal", map[string]any{"signal": "SIGNOTHING"})
	o.Notify("$/signal", map[string]any{"signal": "SIGINT"})
	rest, _ := io.ReadAll(out)
	var exit Exit
	if err := o.Wait(&exit); err != nil || exit.Code != 5 || string(rest) != "got\n" {
		t.Errorf("%v %+v %q", err, exit, rest)
	}
}

// TestExecSlowReader: a program waits for its reader, as with a pipe; nothing
// is lost, however long after the program's end it is read.
func TestExecSlowReader(t *testing.T) {
	r := open(t, &tool.Grant{})
	c := r.session(RoleExec)
	const size = 2 << 20
	o, err := c.Start(within(t, 20*time.Second), "exec", Exec{Argv: []string{"sh", "-c", "head -c 2097152 /dev/zero; sleep 100 &"}})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	if kb := resident(t, r.sessions()[0]); kb > 60<<10 {
		t.Errorf("the session takes %d kB", kb)
	}
	n := 0
	buf := make([]byte, 100<<10)
	for {
		m, err := o.Stream(wire.Stdout).Read(buf)
		n += m
		if err != nil {
			break
		}
		time.Sleep(15 * time.Millisecond)
	}
	var exit Exit
	if err := o.Wait(&exit); err != nil || n != size {
		t.Errorf("%v: %d bytes, want %d", err, n, size)
	}
}

// TestExecBackground: what a normally ended exec leaves stays, as with an
// engine; when the client vanishes, the program is killed.
func TestExecBackground(t *testing.T) {
	r := open(t, &tool.Grant{})
	c, m := r.session(RoleExec), mark()
	begin := testutil.Now()
	exit, out, _, err := c.exec(Exec{Argv: []string{"sh", "-c", "sleep 100 & echo started; : " + m + "; exec 2>/dev/null; sh -c 'sleep 100; : " + m + "' &"}}, "")
	if err != nil || exit.Code != 0 || out != "started\n" || testutil.Since(begin) > 3*time.Second {
		t.Errorf("%v %+v %q in %v", err, exit, out, testutil.Since(begin))
	}
	c.Close()
	testutil.Eventually(t, "the session ends", func() bool { return len(r.sessions()) == 0 })
	time.Sleep(100 * time.Millisecond)
	if len(marked(t, m)) == 0 {
		t.Error("the background process was killed")
	}

	c, m = r.session(RoleExec), mark()
	if _, err := c.Start(context.Background(), "exec", Exec{Argv: []string{"sh", "-c", "trap '' TERM HUP; (setsid sh -c 'sleep 100; : " + m + "' &); while :; do sleep 0.01; done"}}); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "it runs", func() bool { return len(marked(t, m)) >= 2 })
	c.Close()
	testutil.Eventually(t, "all of it is killed", func() bool { return len(marked(t, m)) == 0 })
}

func TestMCP(t *testing.T) {
	secrets := t.TempDir()
	os.Chmod(secrets, 0o755)
	os.WriteFile(filepath.Join(secrets, "token"), []byte("s3cret\n"), 0o644)
	server := func(line string, secrets map[string]string) tool.Server {
		return tool.Server{Command: []string{"sh", "-c", line}, Env: map[string]string{"A": "b"}, Secrets: secrets}
	}
	g := &tool.Grant{
		Worker: "greeter",
		Tools:  []tool.Offer{{Name: "mcp__echo"}, {Name: "mcp__one__add"}, {Name: "mcp__bad"}, {Name: "mcp__poor"}, {Name: "mcp__gone"}, {Name: "mcp__nothing"}},
		MCP: map[string]tool.Server{
			"echo":   server(`echo "$A $TOKEN"; exec cat`, map[string]string{"TOKEN": "token"}),
			"one":    server("cat", nil),
			"bad":    server("seq 1 10000 >&2; echo last words >&2; exit 3", nil),
			"poor":   server("cat", map[string]string{"X": "missing"}),
			"closed": server("cat", nil),
			"gone":   {Command: []string{"no-such-server"}},
		},
	}
	r := openWith(t, setting{Grant: text(t, g), Secrets: secrets})
	c := r.session(RoleTools)
	start := func(name string) *wire.Outgoing {
		t.Helper()
		o, err := c.Start(within(t, 10*time.Second), "mcp", Server{Server: name})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := start("echo")
	io.WriteString(o.Stream(wire.Stdin), "hello\n")
	o.Stream(wire.Stdin).Close()
	out, _ := io.ReadAll(o.Stream(wire.Stdout))
	var exit Exit
	if err := o.Wait(&exit); err != nil || exit.Code != 0 || string(out) != "b s3cret\nhello\n" {
		t.Errorf("%v %+v %q", err, exit, out)
	}
	for name, want := range map[string]struct {
		code int
		says []string
	}{
		"bad":     {wire.CodeToolFailed, []string{"the MCP server bad ended (exit code 3)", "last words"}},
		"poor":    {wire.CodeToolFailed, []string{`no secret "missing"`}},
		"closed":  {wire.CodeNotOffered, []string{"mcp__closed"}},
		"nothing": {wire.CodeNotOffered, []string{`no MCP server "nothing"`}},
		"gone":    {wire.CodeNotFound, []string{"no-such-server"}},
		"a/b":     {wire.CodeNotOffered, nil},
	} {
		err := start(name).Wait(nil)
		wants(t, err, want.code, want.says...)
		if err != nil && len(err.Error()) > 6<<10 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
	// B41: of a server with some tools, no other is called, even where the host
	// didn't look.
	call := func(tool string) string {
		return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}` + "\n"
	}
	o = start("one")
	io.WriteString(o.Stream(wire.Stdin), call("add"))
	first := make([]byte, len(call("add")))
	if _, err := io.ReadFull(o.Stream(wire.Stdout), first); err != nil || string(first) != call("add") {
		t.Errorf("%v %q", err, first)
	}
	io.WriteString(o.Stream(wire.Stdin), call("remove")+call("add"))
	if out, _ = io.ReadAll(o.Stream(wire.Stdout)); len(out) > 0 {
		t.Errorf("it got %q", out)
	}
	wants(t, o.Wait(nil), wire.CodeNotOffered, "mcp__one__remove", "mcp__one__add")
	// It ends with the session, whatever it does.
	o = start("one")
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	io.WriteString(o.Stream(wire.Stdin), ping)
	io.ReadFull(o.Stream(wire.Stdout), make([]byte, len(ping)))
	c.Close()
	testutil.Eventually(t, "the session ends", func() bool { return len(r.sessions()) == 0 })
}
