//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
)

// A client that sends what no client should, floods, doesn't read and vanishes:
// each is answered or held up, the next call works, and nothing of it is left in
// the worker.
func TestB60_MCPClient(t *testing.T) {
	scenario.Once(t, "nothing of it depends on who runs it")
	s := by(scenario.New(t, "mcp", "garbage, a line of 1 GB, a flood of calls and a client that vanishes: bounded, answered, the next call works, and what ran in the worker ends"))
	s.Env = append(s.Env, "XDG_CONFIG_HOME="+s.TempDir())
	s.Write("out/.keep", "")
	s.Up()
	server := s.Command(t.Context(), "tools", "--approve-all", "builder")
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	server.Stderr = &errs
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Process.Kill()
	lines := bufio.NewReaderSize(out, 1<<20)
	send := func(text string) {
		if _, err := io.WriteString(in, text); err != nil {
			t.Fatalf("%v\n%s", err, errs.String())
		}
	}
	type answer struct {
		ID     any             `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	next := func() (a answer) {
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &a)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, errs.String())
		}
		return a
	}
	call := func(id, tool string, args any) {
		b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args}})
		if err != nil {
			t.Fatal(err)
		}
		send(string(b) + "\n")
	}
	read := map[string]any{"path": "/workspace/src/main.go.txt"}
	works := func(after string) {
		t.Helper()
		call("works", "read_file", read)
		for a := next(); ; a = next() {
			if a.ID == "works" {
				if !strings.Contains(string(a.Result), "println") {
					t.Errorf("after %s: %s", after, a.Result)
				}
				return
			}
		}
	}
	send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bad","version":"1"}}}` + "\n")
	next()
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	works("the hello")

	for _, bad := range []string{"hello\n", "[]\n", `{"jsonrpc":"2.0","id":{},"method":"ping"}` + "\n", strings.Repeat("[", 1<<20) + "\n", "\xff\xfe\n"} {
		send(bad)
		if a := next(); a.Error == nil {
			t.Errorf("%.40q is answered with %s", bad, a.Result)
		}
	}
	works("garbage")

	block := strings.Repeat("x", 1<<20)
	for range 1 << 10 {
		send(block)
	}
	send("\n")
	if a := next(); a.Error == nil {
		t.Error("a line of 1 GB is no error")
	}
	works("a line of 1 GB")
	if peak := memoryPeak(t, server.Process.Pid); peak > 200 {
		t.Errorf("the server took %d MiB", peak)
	} else {
		t.Logf("the server took at most %d MiB", peak)
	}

	// More calls than may run; none is lost, and each that ran is a whole one.
	const calls = 500
	go func() {
		for i := range calls {
			call(fmt.Sprint("flood ", i), "read_file", read)
		}
	}()
	busy, good := 0, 0
	for range calls {
		switch a := next(); {
		case a.Error != nil && a.Error.Code == -32001:
			busy++
		case strings.Contains(string(a.Result), "println"):
			good++
		default:
			t.Errorf("%+v %s", a, a.Result)
		}
	}
	t.Logf("a flood of %d calls: %d answered, %d told to wait", calls, good, busy)
	if good < 64 {
		t.Errorf("%d calls were answered", good)
	}
	works("a flood")

	// It vanishes in mid-call, with a program in the worker that won't end.
	call("long", "shell", map[string]any{"command": "trap '' TERM HUP INT; sleep 31347 & sleep 31347 & setsid sleep 31347 & wait"})
	sleeping := func() int {
		n := 0
		for line := range processesOf(s, "builder") {
			if _, args, _ := strings.Cut(line, " "); strings.HasPrefix(args, "sleep 31347") {
				n++
			}
		}
		return n
	}
	s.Eventually("the call runs", func() bool { return sleeping() == 3 })
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the server goes on without its client")
	}
	s.Eventually("what ran in the worker has ended", func() bool { return sleeping() == 0 })
	if d := s.Expect(0, "call", "builder", "read_file", "path=/workspace/src/main.go.txt"); !strings.Contains(d.Out, "println") {
		t.Errorf("the next session: %s", d.Out)
	}
}

// memoryPeak is the most memory that a process ever had, in MiB.
func memoryPeak(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var kib int
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
		}
	}
	return kib >> 10
}
