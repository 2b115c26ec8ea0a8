//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// smallFiles are a worker that has every tool, some processes and little else.
func smallFiles(pids string) map[string]string {
	return map[string]string{
		"workshop.yaml": `workshop:
  name: small
  container:
    image: host
    network: none
    mounts: ["./src:/workspace/src"]
    scratch: 16M
    tmp: 16M
    home: 16M
    resources: {memory: 192M, cpu: 1, pids: ` + pids + `, timeout: 20s}
  workers: [worker]
`,
		"workers/worker.md": "---\nname: worker\ntools: Read, Write, LS, Grep, Bash\n---\nx\n",
		"src/a.txt":         "a line\n",
	}
}

// A tool's commands and outputs, by a client that is well behaved.
func TestB60_CommandsOfTools(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := quiet(scenario.At(t, "endless and binary output, a command that ignores SIGTERM, daemons, closed streams, a full tmpfs, no process and no memory left: bounded, answered, the worker stays up and the next call works", smallFiles("64")))
	s.Up()
	before := s.Inspect("worker")
	c := newRPC(t, s, "--approve-all", "worker")
	works := func(after string) {
		t.Helper()
		began := testutil.Now()
		if text, ok := c.call("shell", `{"argv": ["cat", "/workspace/src/a.txt"]}`); !ok || !strings.Contains(text, "a line") || testutil.Since(began) > 5*time.Second {
			t.Errorf("after %s, %v: %s", after, testutil.Since(began), text)
		}
	}
	works("the start")
	for _, x := range []struct {
		name, args, want string
	}{
		{"endless output", `{"command": "cat /dev/zero", "timeout_seconds": 1}`, "[timed out after"},
		{"endless output of both", `{"command": "yes & yes >&2", "timeout_seconds": 1}`, "[timed out after"},
		{"binary output", `{"command": "head -c 3000000 /dev/urandom", "max_output_bytes": 4194304}`, "3000000 bytes"},
		{"a line without an end", `{"command": "head -c 9000000 /dev/zero | tr '\\0' a"}`, "of 9000000 bytes left out"},
		{"no SIGTERM", `{"command": "trap '' TERM HUP INT QUIT; while :; do sleep 0.1; done", "timeout_seconds": 0.5}`, "[timed out after"},
		{"a daemon", `{"command": "setsid sh -c 'sleep 5171 & sleep 5171' & echo begun"}`, "begun"},
		{"a daemon with no stream and no environment", `{"command": "env -i setsid setsid sh -c 'exec sleep 5172' <&- >&- 2>&- & echo begun"}`, "begun"},
		{"closed streams", `{"command": "exec <&- >&- 2>&-; sleep 0.2; exit 5"}`, "[exit code 5]"},
		{"a stream that stays open", `{"command": "sleep 5173 & echo begun"}`, "begun"},
		{"input that nobody reads", `{"command": "echo begun", "stdin": "` + strings.Repeat("x", 1<<20) + `"}`, "begun"},
		{"a full tmpfs", `{"command": "head -c 100000000 /dev/zero > /scratch/full; head -c 100000000 /dev/zero > /tmp/full; head -c 100000000 /dev/zero > /home/worker/full; rm /scratch/full /tmp/full /home/worker/full; echo done"}`, "No space left"}, // what comes next needs the memory
		{"no more processes", `{"command": "for i in $(seq 200); do sleep 5174 & done; wait", "timeout_seconds": 3}`, "fork"},
		{"an end to them", `{"argv": ["pkill", "-f", "sleep 5174"]}`, "[exit code 0"},
		{"a program that forks for ever", `{"argv": ["perl", "-e", "fork while 1"], "timeout_seconds": 1}`, "[timed out after"},
		{"no more memory", `{"command": "perl -e '$a = \"x\" x 400000000; print length $a'; exit 9"}`, "Killed"},
		{"no more memory, by many", `{"command": "for i in 1 2 3 4 5 6; do perl -e '$a = \"x\" x 60000000; sleep 1' & done; wait"}`, ""},
		{"a signal to all", `{"command": "kill -KILL -1"}`, "was lost"},
		{"another daemon, for the end of the session", `{"command": "env -i setsid setsid sh -c 'exec sleep 5176' <&- >&- 2>&- & echo begun"}`, "begun"},
	} {
		began := testutil.Now()
		text, _ := c.call("shell", x.args)
		if took := testutil.Since(began); !strings.Contains(text, x.want) || took > 15*time.Second || len(text) > 30<<20 {
			t.Errorf("%s: %v, %d bytes: %.600s", x.name, took, len(text), text)
		} else {
			t.Logf("%s: %v, %d bytes", x.name, took.Round(time.Millisecond), len(text))
		}
		works(x.name)
	}
	for tool, args := range map[string]string{
		"read_file":    `{"path": "/dev/zero"}`,
		"search_files": `{"pattern": "(a*)*b", "path": "/"}`,
		"list_files":   `{"path": "/", "pattern": "**/**/**/**/*"}`,
		"write_file":   `{"path": "/scratch/more", "content": "` + strings.Repeat("x", 7<<20) + `"}`,
	} {
		began := testutil.Now()
		text, _ := c.call(tool, args)
		if took := testutil.Since(began); took > 25*time.Second || len(text) > 5<<20 {
			t.Errorf("%s: %v, %d bytes", tool, took, len(text))
		} else {
			t.Logf("%s: %v, %d bytes", tool, took.Round(time.Millisecond), len(text))
		}
		works(tool)
	}
	sleeping := func() (left []string) {
		for line := range processesOf(s, "worker") {
			if strings.Contains(line, "sleep 517") {
				left = append(left, line)
			}
		}
		return left
	}
	if len(sleeping()) == 0 {
		t.Error("control: nothing of the session runs before its end")
	}
	c.end()
	if code := c.ended(); code != 0 {
		t.Errorf("exit code %d\n%s", code, c.errs)
	}
	s.Eventually("nothing of the session runs", func() bool { return len(sleeping()) == 0 })
	// The client wasn't harmed by what it was sent, nor the worker by what it ran.
	if after := s.Inspect("worker"); after.Started != before.Started || after.State != "running" {
		t.Errorf("the worker is %s, started %s and %s", after.State, before.Started, after.Started)
	}
	if d := s.Expect(0, "call", "worker", "read_file", "path=/workspace/src/a.txt"); !strings.Contains(d.Out, "a line") {
		t.Errorf("the next session: %s", d.Out)
	}
}

// rawSession is a connection to a worker's toolbox, before any hello.
func rawSession(s *scenario.Scenario, worker string) io.ReadWriteCloser {
	s.Helper()
	rwc := s.Session(worker)
	s.Cleanup(func() { rwc.Close() })
	return rwc
}

// frame makes a frame of the protocol.
func frame(kind byte, body string) string {
	n := len(body)
	return string([]byte{kind, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + body
}

// A client of the wire that isn't well behaved, past all that the host bounds.
func TestB60_WireClient(t *testing.T) {
	scenario.Once(t, "nothing of it depends on who runs it")
	s := quiet(scenario.At(t, "what is no frame, no message, no call; a flood; a client that doesn't read and one that vanishes: the session ends or answers, another one works meanwhile, nothing is left", smallFiles("160")))
	s.Up()
	before := s.Inspect("worker")
	good := toolboxOf(s, "worker", "tools")
	works := func(after string) {
		t.Helper()
		var r json.RawMessage
		if err := good.Call(t.Context(), "call", asked("read_file", `{"path": "/workspace/src/a.txt"}`), &r); err != nil || !strings.Contains(string(r), "a line") {
			t.Errorf("a session beside, after %s: %v %s", after, err, r)
		}
	}
	hello := frame(0, `{"jsonrpc":"2.0","id":1,"method":"hello","params":{"version":"1","role":"tools"}}`)
	for name, sent := range map[string]string{
		"text":                     "GET / HTTP/1.1\r\n\r\n",
		"an unknown kind":          "\x09\x00\x00\x00\x00",
		"4 GB":                     "\x00\xff\xff\xff\xff",
		"a message that is cut":    "\x00\x00\x00\x10\x00{",
		"no JSON":                  frame(0, "{"),
		"no object":                frame(0, "[]"),
		"a deep one":               frame(0, `{"jsonrpc":"2.0","id":2,"method":"ping","params":`+strings.Repeat(`{"a":`, 1000)+"1"+strings.Repeat("}", 1000)+"}"),
		"a key twice":              frame(0, `{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}`),
		"another key":              frame(0, `{"jsonrpc":"2.0","id":2,"method":"ping","grant":{}}`),
		"an id that shrinks":       frame(0, `{"jsonrpc":"2.0","id":1,"method":"ping"}`),
		"an id that is a text":     frame(0, `{"jsonrpc":"2.0","id":"2","method":"ping"}`),
		"data for nobody":          frame(1, "\x00\x00\x00\x63\x00data"),
		"data of nothing":          frame(1, ""),
		"credit of nothing":        frame(2, ""),
		"bytes that are no UTF-8":  frame(0, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"\xff\xfe\"}"),
		"an answer":                frame(0, `{"jsonrpc":"2.0","id":2,"result":{}}`),
		"zeros":                    strings.Repeat("\x00", 1<<20),
		"credit without an end":    frame(2, "\x00\x00\x00\x01\x01\xff\xff\xff\xff"),
		"messages of notification": frame(0, `{"jsonrpc":"2.0","method":"`+strings.Repeat("x", 1<<20)+`"}`),
	} {
		for _, first := range []string{"", hello} {
			c := rawSession(s, "worker")
			go func() { _, _ = io.WriteString(c, first+sent) }()
			closed := make(chan int, 1)
			go func() { b, _ := io.ReadAll(c); closed <- len(b) }()
			select {
			case n := <-closed:
				if n > 64<<10 {
					t.Errorf("%s is answered with %d bytes", name, n)
				}
			case <-time.After(300 * time.Millisecond): // waits for the rest, as it may
			}
			c.Close()
		}
		works(name)
	}

	// Answered, and the session goes on.
	c := toolboxOf(s, "worker", "tools")
	for method, params := range map[string]any{
		"reboot": nil, "": nil, "hello": protocol.Hello{Version: "1", Role: "exec"}, "call": 7, "mcp": "x", "exec": []int{1},
	} {
		if err := c.Call(t.Context(), method, params, nil); err == nil {
			t.Errorf("%s %v is answered", method, params)
		}
	}
	for _, args := range []string{`7`, `[]`, `null`, `{"path": 7}`, `{"path": ["a"]}`, `{"path": "/a\u0000b"}`, `{"path": ""}`, `{"path": "` + strings.Repeat("a/", 1<<19) + `"}`, `{"path": "a", "max_lines": 1e300}`, `{"path": "a", "max_lines": -1}`, `{"path": "a", "more": 1}`} {
		var r json.RawMessage
		if err := c.Call(t.Context(), "call", asked("read_file", args), &r); err == nil {
			t.Errorf("read_file %.60s: %s", args, r)
		}
	}
	var r json.RawMessage
	if err := c.Call(t.Context(), "call", asked("read_file", `{"path": "/workspace/src/a.txt"}`), &r); err != nil {
		t.Errorf("the same session after them: %v", err)
	}

	// A flood: each is answered, and those that ran are whole.
	var mu sync.Mutex
	busy, ran := 0, 0
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			var r json.RawMessage
			err := c.Call(t.Context(), "call", asked("shell", `{"argv": ["cat", "/workspace/src/a.txt"]}`), &r)
			mu.Lock()
			defer mu.Unlock()
			var answer *wire.Error
			switch {
			case err == nil && strings.Contains(string(r), "a line"):
				ran++
			case errors.As(err, &answer) && answer.Code == wire.CodeBusy:
				busy++
			default:
				t.Errorf("in a flood: %v %s", err, r)
			}
		})
	}
	wg.Wait()
	t.Logf("a flood: %d ran, %d told to wait", ran, busy)
	if ran == 0 {
		t.Error("none ran")
	}
	works("a flood")

	// It never reads: its own calls wait, the worker's memory isn't filled.
	mute := rawSession(s, "worker")
	_, _ = io.WriteString(mute, hello)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 2; i < 400; i++ {
			call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"call","params":{"tool":"shell","arguments":{"command":"head -c 2000000 /dev/zero; sleep 5175","max_output_bytes":4194304,"timeout_seconds":1}}}`, i)
			if _, err := io.WriteString(mute, frame(0, call)); err != nil {
				return
			}
		}
	}()
	time.Sleep(2500 * time.Millisecond)
	works("a client that doesn't read")
	// And it vanishes.
	mute.Close()
	<-stopped
	s.Eventually("what it began has ended", func() bool {
		for line := range processesOf(s, "worker") {
			if strings.Contains(line, "5175") {
				return false
			}
		}
		return true
	})
	works("a client that vanished")
	// Sessions without a hello, more than anybody needs.
	var open []io.Closer
	for range 20 {
		open = append(open, rawSession(s, "worker"))
	}
	works("sessions that say nothing")
	for _, c := range open {
		c.Close()
	}
	if after := s.Inspect("worker"); after.Started != before.Started || after.State != "running" {
		t.Errorf("the worker is %s, started %s and %s", after.State, before.Started, after.Started)
	}
	s.Eventually("no session is left but one", func() bool {
		n := 0
		for line := range processesOf(s, "worker") {
			if strings.Contains(line, "workshop-init tools") {
				n++
			}
		}
		return n <= 2 // good, and c
	})
	s.Expect(0, "call", "worker", "read_file", "path=/workspace/src/a.txt")
}
