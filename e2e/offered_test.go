//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// toolboxOf speaks with the toolbox of a worker past all that the host checks.
func toolboxOf(s *scenario.Scenario, worker, role string) *wire.Conn {
	s.Helper()
	c := wire.NewClient(s.Session(worker))
	s.Cleanup(func() { c.Close() })
	if err := c.Call(s.Context(), "hello", protocol.Hello{Version: wire.Version, Client: "e2e", Role: role}, nil); err != nil {
		s.Fatal(err)
	}
	return c
}

func asked(tool, args string) protocol.Call {
	return protocol.Call{Tool: tool, Arguments: json.RawMessage(args)}
}

// refusedByToolbox makes a call that the toolbox must not take.
func refusedByToolbox(t *testing.T, c *wire.Conn, tool, args string) {
	t.Helper()
	var result json.RawMessage
	err := c.Call(t.Context(), "call", asked(tool, args), &result)
	var answer *wire.Error
	if !errors.As(err, &answer) || answer.Code != wire.CodeNotOffered {
		t.Errorf("the toolbox takes %s %s: %s %v", tool, args, result, err)
	}
}

// redirector answers in the test internet with a redirect to the query.
func redirector(t *testing.T, in *testnet.Internet, addr string) {
	t.Helper()
	var l net.Listener
	err := in.NS().Do(func() (err error) { l, err = net.Listen("tcp", addr); return err })
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
	}), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
}

// notesServer is an MCP server of two tools in Perl; both write what they did.
const notesServer = `$| = 1;
while (<STDIN>) {
  my ($id) = /"id":\s*("?[\w-]+"?)/ or next;
  my $r = '{}';
  if (/"method":\s*"initialize"/) { $r = '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1"}}' }
  elsif (/"method":\s*"tools\/list"/) { $r = '{"tools":[{"name":"get","inputSchema":{"type":"object"}},{"name":"put","inputSchema":{"type":"object"}}]}' }
  elsif (/"method":\s*"tools\/call"/) { my ($n) = /"name":\s*"(\w+)"/; open my $f, '>>', "/workspace/out/notes-$n"; print $f "x"; close $f; $r = '{"content":[{"type":"text","text":"did ' . $n . '"}]}' }
  print qq({"jsonrpc":"2.0","id":$id,"result":$r}\n);
}`

func TestB41_OnlyWhatTheFileLists(t *testing.T) {
	scenario.NotRootless(t, "the file is read by the command and by the toolbox alike")
	s := quiet(scenario.At(t, "what a worker's file, or its item in workshop.yaml, doesn't list isn't listed, and is refused by the command line, over MCP, and by the toolbox itself; limits hold in both", map[string]string{
		"workshop.yaml": `workshop:
  name: offered
  container:
    image: host
    network: {mode: restricted, allow: [allowed.example.org, "allowed.example.org:8088", denied.example.org], dns: [198.51.100.53]}
    mounts:
      - ./src:/workspace/src
      - ./out:/workspace/out:rw
  workers:
    - {name: limited, tools: [Read, "Bash(git:*)", "WebFetch(domain:allowed.example.org)", mcp__notes__get]}
    - all
    - bare
  mcp:
    notes: {command: perl, args: [/workspace/src/notes.pl]}
    other: {command: perl, args: [/workspace/src/notes.pl]}
`,
		"workers/all.md":  "---\nname: all\ntools: Read, Write, Edit, LS, Grep, Bash, WebFetch, mcp__notes, mcp__other\n---\nx\n",
		"workers/bare.md": "---\nname: bare\ntools: []\n---\nx\n",
		"src/notes.pl":    notesServer,
		"src/a.txt":       "a line\n",
		"out/.keep":       "",
	}))
	state := s.TempDir()
	s.Env = append(s.Env, "XDG_STATE_HOME="+state)
	redirector(t, s.Internet, testnet.Allowed+":8088")
	s.Up()

	offered := []string{"read_file", "shell", "fetch_url", "mcp__notes__get"}
	c := newRPC(t, s, "--approve-all", "limited")
	got := c.names()
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(offered)); !slices.Equal(got, want) {
		t.Errorf("limited is offered %v, want %v", got, want)
	}
	bare := newRPC(t, s, "--approve-all", "bare")
	if got := bare.names(); len(got) > 0 {
		t.Errorf("bare is offered %v", got)
	}
	past, pastBare := toolboxOf(s, "limited", "tools"), toolboxOf(s, "bare", "tools")
	const file = "/workspace/out/a"
	for tool, args := range map[string]string{
		"write_file":        `{"path": "` + file + `", "content": "x"}`,
		"edit_file":         `{"path": "/workspace/out/.keep", "old_string": "", "new_string": "x"}`,
		"list_files":        `{"path": "/workspace"}`,
		"search_files":      `{"pattern": "x", "path": "/workspace"}`,
		"mcp__notes__put":   `{}`,
		"mcp__notes":        `{}`,
		"mcp__other__get":   `{}`,
		"delegate_bare":     `{"task": "x"}`,
		"all__write_file":   `{"path": "` + file + `", "content": "x"}`,
		"Write":             `{"path": "` + file + `", "content": "x"}`,
		"shell ":            `{"argv": ["touch", "` + file + `"]}`,
		"mcp__notes__get__": `{}`,
	} {
		// Nobody is asked about it either: not offered comes first.
		if d := alone(s, nil, "call", "limited", tool, args); d.Code != 4 || !strings.Contains(d.Err, "not offered") && !strings.Contains(d.Err, "may not make this call") || strings.Contains(d.Err, "B42") {
			t.Errorf("call %s: %d\n%s%s", tool, d.Code, d.Out, d.Err)
		}
		if text, ok := c.call(tool, args); ok {
			t.Errorf("MCP %s: %s", tool, text)
		}
		refusedByToolbox(t, past, tool, args)
		refusedByToolbox(t, pastBare, tool, args)
	}
	for _, tool := range offered {
		refusedByToolbox(t, pastBare, tool, `{"path": "/workspace/src/a.txt", "argv": ["git"], "url": "http://allowed.example.org/"}`)
	}

	// Limits, by the host and behind it.
	git := func(argv ...string) string {
		b, _ := json.Marshal(map[string]any{"argv": argv})
		return string(b)
	}
	for _, args := range []string{
		git("touch", file), git("/usr/bin/git", "version"), git("git ", "version"), git("sh", "-c", "git version; touch "+file), git("env", "git", "version"),
		`{"command": "git version; touch ` + file + `"}`, `{"command": "git version && touch ` + file + `"}`, `{"command": "git version > ` + file + `"}`,
		`{"command": "git version $(touch ` + file + `)"}`, `{"command": "PATH=/workspace/out git version"}`, `{"command": "git version\ntouch ` + file + `"}`,
		`{"argv": ["git", "version"], "env": {"PATH": "/workspace/out"}}`,
	} {
		if text, ok := c.call("shell", args); ok {
			t.Errorf("MCP shell %s: %s", args, text)
		}
		refusedByToolbox(t, past, "shell", args)
	}
	// Two readings of one text: neither is run.
	for _, args := range []string{`{"argv": ["git", "version"], "argv": ["touch", "` + file + `"]}`, `{"argv": ["git", "version"], "Argv": ["touch", "` + file + `"]}`, `{"argv": ["git", "version"], "command": "touch ` + file + `"}`} {
		var ran json.RawMessage
		if err := past.Call(t.Context(), "call", asked("shell", args), &ran); err == nil {
			t.Errorf("the toolbox runs %s: %s", args, ran)
		}
	}
	past = toolboxOf(s, "limited", "tools") // a key that stands twice ends a session
	if text, ok := c.call("shell", `{"command": "git version"}`); !ok || !strings.Contains(text, "git version") {
		t.Errorf("control: %s", text)
	}
	if err := past.Call(t.Context(), "call", asked("shell", git("git", "version")), nil); err != nil {
		t.Errorf("control: %v", err)
	}

	// The network lets both hosts pass; the limit one of them, at each hop.
	const hop, away, twice = `{"url": "http://allowed.example.org:8088/?http://allowed.example.org/"}`, `{"url": "http://allowed.example.org:8088/?http://denied.example.org/"}`,
		`{"url": "http://allowed.example.org:8088/?http://allowed.example.org:8088/?http://denied.example.org/"}`
	all := newRPC(t, s, "--approve-all", "all")
	if text, ok := all.call("fetch_url", away); !ok || s.Conns(testnet.Denied, 80) != 1 {
		t.Errorf("control: without a limit %s", text)
	}
	if text, ok := c.call("fetch_url", hop); !ok {
		t.Errorf("control: a redirect within the limit: %s", text)
	}
	s.Internet.Reset()
	for _, args := range []string{away, twice, `{"url": "http://denied.example.org/"}`, `{"url": "http://allowed.example.org@denied.example.org/"}`, `{"url": "http://denied.example.org/allowed.example.org"}`, `{"url": "http://` + testnet.Denied + `/"}`} {
		if text, ok := c.call("fetch_url", args); ok {
			t.Errorf("MCP fetch_url %s: %s", args, text)
		}
		var got json.RawMessage
		if err := past.Call(t.Context(), "call", asked("fetch_url", args), &got); err == nil {
			t.Errorf("the toolbox fetches %s: %s", args, got)
		}
	}
	if n := s.Conns(testnet.Denied, 80) + s.Internet.Asked("denied.example.org"); n != 0 {
		t.Errorf("%d times denied.example.org was asked for or connected to", n)
	}

	// What is no call: a server that isn't listed, a person's exec, in a session
	// of tools; a tool in an exec's.
	for method, params := range map[string]any{
		"mcp":  protocol.Server{Server: "other"},
		"exec": protocol.Exec{Argv: []string{"touch", file}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), scenario.FailFast)
		var answer *wire.Error
		if err := past.Call(ctx, method, params, nil); !errors.As(err, &answer) {
			t.Errorf("a session of tools has %s: %v", method, err)
		}
		cancel()
	}
	if err := toolboxOf(s, "limited", "exec").Call(t.Context(), "call", asked("read_file", `{"path": "/workspace/src/a.txt"}`), nil); err == nil {
		t.Error("a session of exec has tools")
	}
	if text, ok := c.call("mcp__notes__get", `{}`); !ok || !strings.Contains(text, "did get") {
		t.Errorf("control: %s", text)
	}
	// The host sent none of them, and wrote down that it refused.
	refused := 0
	for _, e := range auditOf(t, state) {
		if e.Worker != "limited" || e.Event == "done" {
			continue
		}
		if e.Event == "refused" {
			refused++
		} else if !slices.Contains(offered, e.Tool) || strings.Contains(string(e.Arguments), file) || strings.Contains(string(e.Arguments), "/usr/bin/git") {
			t.Errorf("the host let pass: %s %s", e.Tool, e.Arguments)
		}
	}
	if refused < 24 {
		t.Errorf("%d refusals in the audit", refused)
	}
	if s.Exists("out/a") || s.Exists("out/notes-put") || s.Read("out/.keep") != "" {
		t.Error("something that isn't offered was executed")
	}
}
