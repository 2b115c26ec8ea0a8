//go:build linux

package toolbox

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// unconnected is a session without its hello.
func (r *room) unconnected() *client {
	r.t.Helper()
	conn, err := dialin.Accept(context.Background(), r.door, r.pid())
	if err != nil {
		r.t.Fatal(err)
	}
	c := &client{Conn: wire.NewClient(conn), t: r.t, raw: conn}
	r.t.Cleanup(func() { c.Close() })
	return c
}

func (c *client) send(method string, params, result any) error {
	return c.Call(within(c.t, 10*time.Second), method, params, result)
}

func TestHello(t *testing.T) {
	g := everything()
	r := open(t, g)
	c := r.unconnected()
	wants(t, c.send("ping", struct{}{}, nil), wire.CodeHello, "hello")
	wants(t, c.send("call", Call{Tool: tool.Shell}, nil), wire.CodeHello, "hello")
	wants(t, c.send("hello", map[string]any{"version": "2", "new": 1}, nil), wire.CodeHello, "restart")
	wants(t, c.send("hello", map[string]any{"version": "1", "new": 1}, nil), wire.CodeInvalidParams, `unknown argument "new"`, "role is missing")
	wants(t, c.send("hello", Hello{Version: "1", Role: "root"}, nil), wire.CodeHello, "role must be")
	var w Welcome
	if err := c.send("hello", Hello{Version: "1", Role: RoleTools}, &w); err != nil {
		t.Fatal(err)
	}
	if text(t, &w.Grant) != text(t, g) || w.Version != "1" || filepath.Base(w.Workdir) != "scratch" {
		t.Errorf("got %+v", w)
	}
	wants(t, c.send("hello", Hello{Version: "1", Role: RoleExec}, nil), wire.CodeHello, "twice")
	wants(t, c.send("exec", Exec{Argv: []string{"true"}}, nil), wire.CodeInvalidRequest, "role tools has no exec")
	wants(t, c.send("shutdown", struct{}{}, nil), wire.CodeMethodNotFound, "shutdown")
	if err := c.send("ping", struct{}{}, nil); err != nil {
		t.Error(err)
	}
	e := r.session(RoleExec)
	wants(t, e.send("call", Call{Tool: tool.Shell}, nil), wire.CodeInvalidRequest, "role exec has no call")
	wants(t, e.send("mcp", Server{Server: "x"}, nil), wire.CodeInvalidRequest, "role exec has no mcp")
}

// TestOptIn is B41 in the toolbox: whatever a client sends, only what stands in
// the arguments of PID 1 runs.
func TestOptIn(t *testing.T) {
	g := &tool.Grant{Worker: "greeter", Tools: []tool.Offer{
		{Name: tool.ReadFile}, {Name: tool.Shell, Limit: "echo:*"}, {Name: "mcp__notes"},
	}}
	c := open(t, g).session(RoleTools)
	run := func(name, args string) error {
		return c.send("call", map[string]any{"tool": name, "arguments": json.RawMessage(args)}, nil)
	}
	proof := filepath.Join(t.TempDir(), "x")
	os.Chmod(filepath.Dir(proof), 0o777)
	for name, args := range map[string]string{
		tool.WriteFile: `{"path":"` + proof + `","content":"x"}`,
		"no_such_tool": `{}`, "SHELL": `{"argv":["echo"]}`, "mcp__other__x": `{}`,
		tool.FetchURL: `{"url":"http://127.0.0.1/"}`,
	} {
		wants(t, run(name, args), wire.CodeNotOffered, "greeter", "shell(echo:*)")
	}
	wants(t, run("", `{}`), wire.CodeNotOffered, "names no tool", "shell(echo:*)")
	wants(t, run("mcp__notes__add", `{}`), wire.CodeInvalidParams, "MCP server")
	for _, args := range []string{
		`{"argv":["touch","` + proof + `"]}`,
		`{"command":"echo; touch ` + proof + `"}`,
		`{"argv":["echo"],"argv":["touch","` + proof + `"]}`,
		`{"argv":["echo"],"ARGV":["touch","` + proof + `"]}`,
		`{"argv":["echo"],"command":"touch ` + proof + `"}`,
		`{"argv":["echo"],"env":{"PATH":"/tmp"}}`,
	} {
		wants(t, run(tool.Shell, args), wire.CodeNotOffered, "shell")
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("one of the calls ran")
	}
	var result tool.ShellResult
	if err := c.call(tool.Shell, tool.ShellArgs{Argv: []string{"echo", "hi"}}, &result); err != nil || result.Stdout.Text != "hi\n" {
		t.Errorf("%v %+v", err, result)
	}
	// Without --tools nothing is offered; a worker's own process gets no more
	// by starting a session itself.
	none := openWith(t, setting{}).session(RoleTools)
	wants(t, none.call(tool.Shell, tool.ShellArgs{Argv: []string{"true"}}, nil), wire.CodeNotOffered, "there is no tool shell; no tools are granted")
}

// TestNotDumpable: a process of the same uid can't look into a session or write
// to its connection. The control is a process that is dumpable.
func TestNotDumpable(t *testing.T) {
	r := open(t, everything())
	c := r.session(RoleTools)
	const session = "p=$PPID; [ $(tr '\\0' ' ' </proc/$p/cmdline | cut -d' ' -f2) = tools ] || echo no session; "
	for _, try := range []string{
		"ls /proc/$p/fd/", "ls /proc/$p/root/", "ls /proc/$p/cwd/", "exec 3</proc/$p/mem", "exec 3>/proc/$p/mem", "exec 3</proc/$p/maps",
		"exec 3</proc/$p/environ", "exec 3>/proc/$p/fd/3", "exec 3>/proc/$p/fd/1", "cat /proc/1/environ", "cat /proc/$p/exe",
	} {
		got := c.shell(session + try)
		if got.ExitCode == 0 || !strings.Contains(strings.ToLower(got.Stderr.Text), "denied") || got.Stdout.Text != "" {
			t.Errorf("%s: %+v", try, got)
		}
	}
	if got := c.shell("sleep 5 & ls /proc/$!/fd/; kill $!"); got.ExitCode != 0 || got.Stdout.Text == "" {
		t.Errorf("the control failed: %+v", got)
	}
}

const stubborn = "(setsid sh -c \"trap '' TERM HUP INT; exec >/dev/null 2>&1 </dev/null; while :; do sleep 0.01; done; : MARK\" &) ; sleep 0.05"

// TestSessionsEnd: whatever ends a session ends what its tools started, also
// what ignores SIGTERM, has left its group and its parent, and holds no stream.
func TestSessionsEnd(t *testing.T) {
	r := open(t, everything())
	for name, end := range map[string]func(c *client, pid int){
		"the client closes":      func(c *client, pid int) { c.Close() },
		"SIGTERM":                func(c *client, pid int) { unix.Kill(pid, unix.SIGTERM) },
		"SIGHUP":                 func(c *client, pid int) { unix.Kill(pid, unix.SIGHUP) },
		"the session is killed":  func(c *client, pid int) { unix.Kill(pid, unix.SIGKILL) },
		"the session is stopped": func(c *client, pid int) { unix.Kill(pid, unix.SIGSTOP) },
		"a bad frame":            func(c *client, pid int) { c.raw.Write([]byte("\xffxxxxxxxxxxxxxxxxxxxx")) },
		"a frame of 1 GB":        func(c *client, pid int) { c.raw.Write(binary.BigEndian.AppendUint32([]byte{0}, 1<<30)) },
		"half a frame, then end": func(c *client, pid int) { c.raw.Write([]byte{0, 0}); c.raw.Close() },
	} {
		c, m := r.session(RoleTools), mark()
		pids := r.sessions()
		if len(pids) != 1 {
			t.Fatalf("%d sessions", len(pids))
		}
		c.shell(strings.ReplaceAll(stubborn, "MARK", m))
		go c.call(tool.Shell, tool.ShellArgs{Command: "trap '' TERM; sleep 60; : " + m}, nil)
		testutil.Eventually(t, "both run", func() bool { return len(marked(t, m)) >= 2 })
		end(c, pids[0])
		testutil.Eventually(t, name+": its processes end", func() bool { return len(marked(t, m)) == 0 && len(r.sessions()) == 0 })
		select {
		case <-c.Done():
		case <-time.After(5 * time.Second):
			t.Errorf("%s: the client isn't told", name)
		}
	}
	testutil.Eventually(t, "all processes are reaped", func() bool {
		list, _ := reaper.Scan()
		return !slices.ContainsFunc(reaper.Descendants(list, r.pid()), func(i reaper.Info) bool { return i.Ended() })
	})

}

// TestFloodOfSignals: a command that floods its session with signals is ended at its
// timeout like any other, and commands have the usual dispositions.
func TestFloodOfSignals(t *testing.T) {
	r := open(t, everything())
	c := r.session(RoleTools)
	// 32 and 33 are a C library's own, which handles them in each program that uses
	// them. 33 is ignored in a test program with one (-race); 32 was seen so once.
	got := c.shell("grep -E 'Sig(Ign|Blk)' /proc/self/status").Stdout.Text
	if regexp.MustCompile(`SigIgn:\t0000000[01][08]0000000\n`).ReplaceAllString(got, "SigIgn:\t0000000000000000\n") != "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n" {
		t.Errorf("a command begins with\n%s", got)
	}
	pid := r.sessions()[0]
	// What is dropped costs the session nothing, however many cores send it.
	const realTime uint64 = 1<<64 - 1<<34 // signals 35 to 64
	if ignored := status(t, pid, "SigIgn"); ignored&realTime != realTime {
		t.Errorf("the session handles %016x of the real-time signals", realTime&^ignored)
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 2 * runtime.NumCPU() {
		go func() {
			for ctx.Err() == nil {
				for _, task := range tasks {
					tid, _ := strconv.Atoi(task.Name())
					for s := syscall.Signal(35); s <= 64; s++ {
						_ = unix.Tgkill(pid, tid, s)
					}
				}
			}
		}()
	}
	if got := c.run(tool.ShellArgs{Argv: []string{"sleep", "60"}, TimeoutSeconds: 1}); !got.TimedOut {
		t.Errorf("%+v", got)
	}
}

// status is a set of signals in /proc/PID/status, signal 1 as the lowest bit.
func status(t *testing.T, pid int, name string) uint64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n"+name+":\t")
	line, _, _ := strings.Cut(rest, "\n")
	set, err := strconv.ParseUint(line, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestSessionByExec: the same through pipes, as an engine carries them; when it
// is killed, PID 1 ends what it leaves.
func TestSessionByExec(t *testing.T) {
	r := open(t, everything())
	for name, end := range map[string]func(c *client, cmd interface{ Signal(os.Signal) error }){
		"close": func(c *client, _ interface{ Signal(os.Signal) error }) { c.Close() },
		"kill":  func(_ *client, p interface{ Signal(os.Signal) error }) { p.Signal(syscall.SIGKILL) },
	} {
		c, cmd := r.sessionByExec(RoleTools)
		if got := c.shell("echo $COLOR; ls -l /proc/self/fd >&2"); got.Stdout.Text != "red\n" {
			t.Errorf("%+v", got)
		}
		m := mark()
		c.shell(strings.ReplaceAll(stubborn, "MARK", m))
		go c.call(tool.Shell, tool.ShellArgs{Command: "trap '' TERM; sleep 60; : " + m}, nil)
		testutil.Eventually(t, "both run", func() bool { return len(marked(t, m)) >= 2 })
		end(c, childOf(t, cmd.Process))
		testutil.Eventually(t, name+": its processes end", func() bool { return len(marked(t, m)) == 0 })
		cmd.Wait()
	}
}

// childOf finds the session below nsenter, which forks.
func childOf(t *testing.T, p *os.Process) *os.Process {
	list, err := reaper.Scan()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range reaper.Descendants(list, p.Pid) {
		child, _ := os.FindProcess(i.Pid)
		return child
	}
	return p
}

// TestForkBomb: at the worker's limit of processes calls fail with its name, and
// the session and PID 1 go on and get everything down.
func TestForkBomb(t *testing.T) {
	r := openWith(t, setting{Grant: text(t, everything()), Nproc: 100})
	c := r.session(RoleTools)
	m := mark()
	got := c.run(tool.ShellArgs{Argv: []string{"sh", "-c", "b() { b & b & }; b & while :; do :; done; : $0", m}, TimeoutSeconds: 0.5})
	if n := len(marked(t, m)); n > 0 || !got.TimedOut {
		t.Errorf("%d processes of the bomb are left: %+v", n, got)
	}
	// The same in the background, while others call.
	c.shell("for i in $(seq 200); do sleep 100 & done; : " + m)
	refused := make(chan error, 5)
	for range cap(refused) {
		go func() { refused <- c.call(tool.Shell, tool.ShellArgs{Argv: []string{"sleep", "1"}}, nil) }()
	}
	n := 0
	for range cap(refused) {
		if err := <-refused; err != nil {
			wants(t, err, wire.CodeToolFailed, "limit of processes", "resources.pids")
			n++
		}
	}
	if n == 0 {
		t.Error("the limit was not reached")
	}
	c.Close()
	testutil.Eventually(t, "the session's end ends them", func() bool { return len(r.sessions()) == 0 })
	next := r.session(RoleTools)
	if got := next.shell("echo fine"); got.Stdout.Text != "fine\n" {
		t.Errorf("%+v", got)
	}
}

// TestSlowClient: a client that asks and doesn't read holds up itself alone.
func TestSlowClient(t *testing.T) {
	r := open(t, everything())
	slow, other := r.unconnected(), r.session(RoleTools)
	frame := func(method string, id int, params any) {
		b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		slow.raw.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...))
	}
	raw, err := dialin.Accept(context.Background(), r.door, r.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	slow.raw = raw
	frame("hello", 1, Hello{Version: "1", Role: RoleTools})
	for i := range 30 {
		frame("call", i+2, Call{Tool: tool.Shell, Arguments: []byte(`{"command":"yes | head -c 3M","max_output_bytes":4000000}`)})
	}
	for range 10 {
		if got := other.shell("echo quick"); got.Stdout.Text != "quick\n" || got.DurationMS > 5000 {
			t.Errorf("%+v", got)
		}
	}
	if kb := resident(t, r.sessions()[0]); kb > 400<<10 {
		t.Errorf("a session takes %d kB", kb)
	}
	raw.Close()
	other.Close()
	slow.Close()
	testutil.Eventually(t, "sessions end", func() bool { return len(r.sessions()) == 0 })
}

// TestFlood: more calls than may be under way are answered with an error.
func TestFlood(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	answers := make(chan error, 200)
	for range 200 {
		go func() { answers <- c.call(tool.Shell, tool.ShellArgs{Argv: []string{"sleep", "0.3"}}, nil) }()
	}
	busy := 0
	for range 200 {
		if err := <-answers; err != nil {
			wants(t, err, wire.CodeBusy)
			busy++
		}
	}
	if busy == 0 || busy > 200-wire.MaxInFlight {
		t.Errorf("%d of 200 were refused", busy)
	}
	if got := c.shell("echo next"); got.Stdout.Text != "next\n" {
		t.Errorf("%+v", got)
	}
}

func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"version":"1","role":"tools"}`))
	f.Add([]byte(`{"version":"2"}`))
	f.Add([]byte(`{"version":1,"version":"1","role":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err == nil && (h.Version != wire.Version || h.Role != RoleTools && h.Role != RoleExec) {
			t.Errorf("%q was taken as %+v", b, h)
		}
	})
}

// FuzzArguments: what is decoded means the same when it is decoded again, and
// the same as tool.Decode reads, by which the grant is checked.
func FuzzArguments(f *testing.F) {
	specs := tool.Specs()
	for i, s := range specs {
		b, _ := json.Marshal(s.Args)
		f.Add(uint8(i), b)
	}
	f.Add(uint8(5), []byte(`{"argv":["a"],"env":{"A":"b"},"timeout_seconds":1e-9}`))
	f.Add(uint8(5), []byte(`{"argv":["a"],"argv":null,"x":[[[{}]]]}`))
	g := everything()
	f.Fuzz(func(t *testing.T, n uint8, b []byte) {
		name := specs[int(n)%len(specs)].Name
		args, problems := tools[name].decode(name, b, g)
		if len(problems) > 0 {
			return
		}
		once, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		again, problems := tools[name].decode(name, once, g)
		twice, _ := json.Marshal(again)
		if len(problems) > 0 || string(twice) != string(once) {
			t.Errorf("%q became %s, and that %s %v", b, once, twice, problems)
		}
	})
}

func FuzzExec(f *testing.F) {
	f.Add([]byte(`{"argv":["a"],"env":["A=b"],"cwd":"/","stdin":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Exec
		if decode(b, &e) == nil && len(execProblems(e)) == 0 && (len(e.Argv) == 0 || e.Argv[0] == "") {
			t.Errorf("%q: nothing to run", b)
		}
	})
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("abc\xe2\x82\xacdef\xff\x00<"), uint16(5), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, most uint16, chunk uint8) {
		k := kept{max: int(most)}
		for rest := b; len(rest) > 0; {
			n := min(len(rest), int(chunk)+1)
			k.add(rest[:n])
			rest = rest[n:]
		}
		out := k.output()
		if out.Bytes != int64(len(b)) || out.Omitted > out.Bytes || len(b) <= int(most) && out.Omitted != 0 {
			t.Errorf("%+v", out)
		}
		if out.Omitted == 0 && !out.Binary && out.Text != string(b) {
			t.Errorf("%q became %q", b, out.Text)
		}
		if j, _ := json.Marshal(out.Text); len(j) > jsonSize(out.Text)+2 {
			t.Errorf("%d bytes of JSON, %d were expected at most", len(j), jsonSize(out.Text))
		}
	})
}
