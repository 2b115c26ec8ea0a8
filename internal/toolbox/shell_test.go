//go:build linux

package toolbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

func TestShell(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	for _, test := range []struct {
		name      string
		args      tool.ShellArgs
		out, errs string
		code      int
		signal    string
	}{
		{name: "argv", args: tool.ShellArgs{Argv: []string{"printf", "%s|", "a b", "$HOME"}}, out: "a b|$HOME|"},
		{name: "a line", args: tool.ShellArgs{Command: "echo a; echo b >&2; exit 3"}, out: "a\n", errs: "b\n", code: 3},
		{name: "worker's environment", args: tool.ShellArgs{Command: "echo $COLOR"}, out: "blue\n"},
		{name: "env", args: tool.ShellArgs{Command: "echo $COLOR$A", Env: map[string]string{"COLOR": "green", "A": "1=2"}}, out: "green1=2\n"},
		{name: "cwd", args: tool.ShellArgs{Argv: []string{"pwd"}, Cwd: "/usr"}, out: "/usr\n"},
		{name: "relative program", args: tool.ShellArgs{Argv: []string{"./true"}, Cwd: "/bin"}},
		{name: "stdin", args: tool.ShellArgs{Argv: []string{"cat"}, Stdin: "text"}, out: "text"},
		{name: "no stdin", args: tool.ShellArgs{Argv: []string{"cat"}}},
		{name: "stdin not read", args: tool.ShellArgs{Argv: []string{"true"}, Stdin: strings.Repeat("x", 1<<20)}},
		{name: "much of stdin", args: tool.ShellArgs{Argv: []string{"wc", "-c"}, Stdin: strings.Repeat("x", 3<<20)}, out: fmt.Sprintln(3 << 20)},
		{name: "a signal", args: tool.ShellArgs{Command: "kill -USR1 $$"}, code: 138, signal: "SIGUSR1"},
		{name: "SIGPIPE is not ignored", args: tool.ShellArgs{Command: "(yes; echo $? >&2) | head -1"}, out: "y\n", errs: "141\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := c.run(test.args)
			if r.Stdout.Text != test.out || r.Stderr.Text != test.errs || r.ExitCode != test.code || r.Signal != test.signal || r.Note != "" {
				t.Errorf("got %+v", r)
			}
			if r.Stdout.Bytes != int64(len(test.out)) {
				t.Errorf("%d bytes", r.Stdout.Bytes)
			}
		})
	}
}

func TestShellRefuses(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	script := "printf '%s' '#!/nothing/there' > x; chmod +x x; echo > plain; mkdir -p dir; printf 'echo hi' > bare; chmod +x bare"
	if r := c.shell(script); r.ExitCode != 0 {
		t.Fatalf("%+v", r)
	}
	const late = "late" // it doesn't show before the start
	for _, test := range []struct {
		args any
		code int
		says []string
	}{
		{map[string]any{}, wire.CodeInvalidParams, []string{"either command or argv"}},
		{tool.ShellArgs{Command: "a", Argv: []string{"b"}}, wire.CodeInvalidParams, []string{"not both"}},
		{map[string]any{"argv": "ls", "cwd": 1, "Command": "x", "timeout_seconds": -1}, wire.CodeInvalidParams, []string{"argv must be a list of strings", "cwd must be a string", `unknown argument "Command"`, "timeout_seconds must not be negative"}},
		{map[string]any{"argv": []any{"ls", 1}}, wire.CodeInvalidParams, []string{"argv must be a list of strings"}},
		{tool.ShellArgs{Argv: []string{"a\x00b"}, Cwd: "\x00"}, wire.CodeInvalidParams, []string{"argv contains a zero byte", "cwd contains a zero byte"}},
		{tool.ShellArgs{Argv: []string{""}}, wire.CodeInvalidParams, []string{"the program is missing"}},
		{tool.ShellArgs{Argv: []string{"true"}, Env: map[string]string{"A=B": "x", "": "y", "Z": "\x00"}}, wire.CodeInvalidParams, []string{`"A=B" is not a valid variable name`, `"" is not a valid variable name`, "value of Z"}},
		{tool.ShellArgs{Argv: []string{"true"}, MaxOutputBytes: 1 << 30}, wire.CodeInvalidParams, []string{"max_output_bytes is at most 4194304"}},
		{tool.ShellArgs{Argv: []string{"true"}, TimeoutSeconds: 61}, wire.CodeInvalidParams, []string{"timeout_seconds is at most 60"}},
		{tool.ShellArgs{Argv: make([]string, 2000)}, wire.CodeInvalidParams, []string{"argv is too long"}},
		{tool.ShellArgs{Argv: []string{"no-such-program"}}, wire.CodeNotFound, []string{"no such program", "PATH="}},
		{tool.ShellArgs{Argv: []string{"/no/such/program"}}, wire.CodeNotFound, []string{"/no/such/program: there is no such program"}},
		{tool.ShellArgs{Argv: []string{"./x"}}, wire.CodeNotFound, []string{late, "interpreter"}},
		{tool.ShellArgs{Argv: []string{"./plain"}}, wire.CodeNotExecutable, []string{"permission denied"}},
		{tool.ShellArgs{Argv: []string{"./dir"}}, wire.CodeNotExecutable, []string{"directory"}},
		{tool.ShellArgs{Argv: []string{"./bare"}}, wire.CodeNotExecutable, []string{late, "interpreter"}},
		{tool.ShellArgs{Argv: []string{"./missing"}, Cwd: "dir"}, wire.CodeNotFound, []string{"./missing: there is no such program"}},
		{tool.ShellArgs{Argv: []string{"plain/x"}}, wire.CodeNotFound, []string{"plain/x: there is no such program"}},
		{tool.ShellArgs{Argv: []string{"plain"}, Env: map[string]string{"PATH": "/nothing"}}, wire.CodeNotFound, []string{"PATH=/nothing"}},
		{tool.ShellArgs{Argv: []string{"true"}, Cwd: "/no/such/dir"}, wire.CodeInvalidParams, []string{"cwd /no/such/dir: there is no such directory"}},
		{tool.ShellArgs{Argv: []string{"true"}, Cwd: "plain"}, wire.CodeInvalidParams, []string{"cwd plain: it is not a directory"}},
		{tool.ShellArgs{Argv: []string{"true"}, Cwd: "/root"}, wire.CodeInvalidParams, []string{"cwd /root: permission denied"}},
		{tool.ShellArgs{Argv: []string{"true", strings.Repeat("x", 200<<10)}}, wire.CodeInvalidParams, []string{late, "longer than the kernel takes"}},
	} {
		says, shows := test.says, true
		if says[0] == late {
			says, shows = says[1:], false
		}
		err := c.call(tool.Shell, test.args, nil)
		wants(t, err, test.code, says...)
		// A look beforehand says the same, or nothing.
		b, _ := json.Marshal(test.args)
		if look := c.Call(within(t, 10*time.Second), "check", Call{Tool: tool.Shell, Arguments: b}, nil); (look != nil) != shows || shows && look.Error() != err.Error() {
			t.Errorf("%.200s: the look says %v, the call %v", b, look, err)
		}
	}
	for _, a := range []tool.ShellArgs{{Command: "touch made"}, {Argv: []string{"touch", "made"}}, {Argv: []string{"../bin/true"}, Cwd: "/usr/lib"}, {Argv: []string{"own"}, Env: map[string]string{"PATH": "/usr/bin"}}} {
		b, _ := json.Marshal(a)
		if err := c.Call(within(t, 10*time.Second), "check", Call{Tool: tool.Shell, Arguments: b}, nil); (err != nil) != (a.Env != nil) {
			t.Errorf("the look at %s says %v", b, err)
		}
	}
	if r := c.shell("ls made"); r.ExitCode == 0 {
		t.Error("a look has run the command")
	}
	if r := c.shell("echo still here"); r.Stdout.Text != "still here\n" {
		t.Errorf("%+v", r)
	}
}

// TestOutput: of floods the beginning and the end are kept, everything is
// counted, and the session doesn't grow.
func TestOutput(t *testing.T) {
	r := open(t, everything())
	c := r.session(RoleTools)
	got := c.shell("seq 1 100000")
	if want := int64(588895); got.Stdout.Bytes != want || got.Stdout.Omitted == 0 || got.Stdout.Binary ||
		!strings.HasPrefix(got.Stdout.Text, "1\n2\n3\n") || !strings.HasSuffix(got.Stdout.Text, "\n99999\n100000\n") ||
		!strings.Contains(got.Stdout.Text, fmt.Sprintf("[… %d bytes left out …]", got.Stdout.Omitted)) {
		t.Errorf("%d bytes, %d omitted, %v: %.40q … %q", got.Stdout.Bytes, got.Stdout.Omitted, got.Stdout.Binary, got.Stdout.Text, got.Stdout.Text[len(got.Stdout.Text)-40:])
	}
	for _, line := range []string{"head -c 300M /dev/zero", "head -c 100M /dev/urandom", "yes | head -c 300M"} {
		got := c.run(tool.ShellArgs{Command: line, MaxOutputBytes: tool.MaxOutputBytes})
		if got.Stdout.Bytes < 100<<20 || got.Stdout.Binary == strings.HasPrefix(line, "yes") || got.ExitCode != 0 {
			t.Errorf("%s: %d bytes, binary %v, exit %d", line, got.Stdout.Bytes, got.Stdout.Binary, got.ExitCode)
		}
		if n := len(got.Stdout.Text); n < 1<<20 || n > 16<<20 {
			t.Errorf("%s: %d bytes of text", line, n)
		}
	}
	begin := testutil.Now()
	got = c.run(tool.ShellArgs{Argv: []string{"yes"}, TimeoutSeconds: 0.3})
	if !got.TimedOut || got.Signal != "SIGTERM" || got.Stdout.Bytes < 1<<20 || testutil.Since(begin) > 5*time.Second {
		t.Errorf("yes: %v, %v, %d bytes in %v", got.TimedOut, got.Signal, got.Stdout.Bytes, testutil.Since(begin))
	}
	if kb := resident(t, r.sessions()[0]); kb > 120<<10 {
		t.Errorf("the session takes %d kB", kb)
	}
}

func resident(t *testing.T, pid int) (kb int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if n, err := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 && err == nil {
			return kb
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// TestTimeout: a command that ignores SIGTERM, and one that left its group.
func TestTimeout(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	for name, line := range map[string]string{
		"ignores SIGTERM":     "trap '' TERM; while :; do sleep 0.01; done; : MARK",
		"a child ignores it":  "sh -c \"trap '' TERM; while :; do sleep 0.01; done; : MARK\" & wait",
		"left its group":      "setsid sh -c \"trap '' TERM; while :; do sleep 0.01; done; : MARK\"",
		"left its parent too": "(setsid sh -c \"trap '' TERM; exec >/dev/null 2>&1 </dev/null; while :; do sleep 0.01; done; : MARK\" &) ; sleep 60",
		"stopped itself":      "kill -STOP $$; : MARK",
	} {
		m := mark()
		begin := testutil.Now()
		r := c.run(tool.ShellArgs{Command: "echo before; " + strings.ReplaceAll(line, "MARK", m), TimeoutSeconds: 0.2})
		if !r.TimedOut || r.Stdout.Text != "before\n" || r.ExitCode < 128 {
			t.Errorf("%s: %+v", name, r)
		}
		if took := testutil.Since(begin); took > 3*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		if left := marked(t, m); len(left) > 0 {
			t.Errorf("%s: %v still run", name, left)
		}
	}
}

func TestCancel(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	m := mark()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- c.Call(ctx, "call", Call{Tool: tool.Shell, Arguments: []byte(`{"command":"trap '' TERM; sleep 60; : ` + m + `"}`)}, nil)
	}()
	testutil.Eventually(t, "it runs", func() bool { return len(marked(t, m)) > 0 })
	cancel()
	if err := <-done; err == nil {
		t.Error("a cancelled call has a result")
	}
	testutil.Eventually(t, "it has ended", func() bool { return len(marked(t, m)) == 0 })
	if r := c.shell("echo next"); r.Stdout.Text != "next\n" {
		t.Errorf("%+v", r)
	}
}

// TestBackground: what stays behind a command is told, doesn't hold the answer
// up, isn't disturbed, and ends with the session.
func TestBackground(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	m := mark()
	for i, line := range []string{
		"sh -c 'while sleep 0.01; do echo x; done; : MARK' & echo started",
		"sh -c 'exec >/dev/null 2>&1; trap \"\" TERM; sleep 100; : MARK' </dev/null & echo started",
	} {
		begin := testutil.Now()
		r := c.shell(strings.ReplaceAll(line, "MARK", m))
		if !strings.HasPrefix(r.Stdout.Text, "started\n") || !strings.Contains(r.Note, "in the background") {
			t.Errorf("%+v", r)
		}
		if took := testutil.Since(begin); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
		if len(marked(t, m)) < i+1 {
			t.Error("it has ended")
		}
	}
	time.Sleep(300 * time.Millisecond) // it would be ended by SIGPIPE, or stand still
	if n := len(marked(t, m)); n < 2 {
		t.Errorf("%d processes in the background, want 2", n)
	}
	c.Close()
	testutil.Eventually(t, "the session's end ends them", func() bool { return len(marked(t, m)) == 0 })
}

// A process that ends with its command, but a little later, isn't told as one that
// still runs.
func TestEndsAfterTheCommand(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	told := 0
	for range 20 {
		// It ends as the command's end closes its input.
		if r := c.shell("rm -f p; mkfifo p; (read x; for i in 1 2 3 4 5 6 7 8 9; do read x && :; done) <p >/dev/null 2>&1 & exec 3>p; echo done"); r.Note != "" || r.Stdout.Text != "done\n" {
			told++
			t.Logf("%+v", r)
		}
	}
	if told > 0 {
		t.Errorf("told of %d of 20", told)
	}
}

func TestConcurrentCalls(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	var wg sync.WaitGroup
	begin := testutil.Now()
	for i := range 40 {
		wg.Go(func() {
			line := fmt.Sprintf("sleep 0.3; echo %d; exit %d", i, i)
			var r tool.ShellResult
			if err := c.call(tool.Shell, tool.ShellArgs{Command: line}, &r); err != nil || r.ExitCode != i || r.Stdout.Text != fmt.Sprintln(i) {
				t.Errorf("%d: %v %+v", i, err, r)
			}
		})
	}
	wg.Wait()
	if took := testutil.Since(begin); took > 6*time.Second {
		t.Errorf("40 calls of 0.3 s took %v: they run one after another", took)
	}
}

// TestFull: a full tmpfs is the command's error, and the next call works.
func TestFull(t *testing.T) {
	c := openWith(t, setting{Grant: text(t, everything()), TmpSize: "1m"}).session(RoleTools)
	if r := c.shell("head -c 5M /dev/zero > big"); r.ExitCode == 0 || !strings.Contains(r.Stderr.Text, "No space left") {
		t.Errorf("%+v", r)
	}
	if r := c.shell("rm big; echo ok"); r.Stdout.Text != "ok\n" {
		t.Errorf("%+v", r)
	}
}

// A call that goes on says so, each second; one that ends soon says nothing.
func TestProgress(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	for command, want := range map[string]int{"echo one; sleep 0.2; echo two >&2; sleep 2.1": 2, "true": 0} {
		args, err := json.Marshal(tool.ShellArgs{Command: command})
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Start(t.Context(), "call", Call{Tool: tool.Shell, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		var r tool.ShellResult
		if err := out.Wait(&r); err != nil {
			t.Fatal(err)
		}
		got := 0
		for n := range out.Notified() {
			if n.Method != "$/progress" || !strings.Contains(string(n.Params), "running for ") || !strings.HasSuffix(string(n.Params), `s: two"}`) {
				t.Errorf("%s %s", n.Method, n.Params)
			}
			got++
		}
		if got != want {
			t.Errorf("%s: told %d times", command, got)
		}
	}
}
