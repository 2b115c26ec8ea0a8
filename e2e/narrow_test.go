//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// chainFiles are three workers in a row, each with less than the one before.
func chainFiles() map[string]string {
	return map[string]string{
		"workshop.yaml": `workshop:
  name: chain
  container:
    image: host
    network: {mode: restricted, allow: [allowed.example.org, denied.example.org], dns: [198.51.100.53]}
    mounts:
      - ./src:/workspace/src
      - ./plans:/workspace/plans
      - ./out:/workspace/out:rw
    secrets: [{name: token, env: E2E_TOKEN}]
  workers:
    - {name: lead, container: {secrets: [token]}}
    - name: builder
      container:
        network: {mode: restricted, allow: [allowed.example.org]}
        mounts: ["./src:/workspace/src", "./out:/workspace/out:rw"]
        secrets: []
    - name: reader
      container:
        network: none
        mounts: ["./src:/workspace/src"]
        secrets: []
`,
		"workers/lead.md":    "---\nname: lead\ntools: Read, Write, LS, Bash, WebFetch\ndelegates-to: [builder]\n---\nYou lead.\n",
		"workers/builder.md": "---\nname: builder\ntools: Read, Write, Bash(cat:*), WebFetch\ndelegates-to: [reader]\n---\nYou build.\n",
		"workers/reader.md":  "---\nname: reader\ntools: Read, Bash(cat:*)\n---\nYou read.\n",
		"src/a.txt":          "a line\n",
		"plans/plan.txt":     "a plan\n",
		"out/.keep":          "",
	}
}

// quiet gives a workshop settings, an audit and a home of its own.
func quiet(s *scenario.Scenario) *scenario.Scenario {
	s.Env = append(by(s).Env, "HOME="+s.TempDir(), "XDG_CONFIG_HOME="+s.TempDir(), "E2E_TOKEN=kept-by-lead")
	return s
}

func TestB40_WiderDelegateIsRefused(t *testing.T) {
	s := quiet(scenario.At(t, "a delegate with a tool, a limit, a name, a mount or a secret that its caller hasn't is refused at up with both places, and nothing is started", chainFiles()))
	for _, c := range []struct {
		name, file, old, new string
		want                 []string
	}{
		{
			"a tool", "workers/reader.md", "tools: Read, ", "tools: Read, LS, ",
			[]string{"workers/builder.md:4:", "which has a tool that it lacks: LS", "workers/reader.md:3:"},
		},
		{
			"a wider limit", "workers/reader.md", "Bash(cat:*)", "Bash",
			[]string{"workers/builder.md:4:", "which has a tool that it lacks: Bash", "workers/reader.md:3:", "workers/builder.md:3:"},
		},
		{
			"another limit", "workers/reader.md", "Bash(cat:*)", "Bash(git log:*)",
			[]string{"workers/builder.md:4:", "Bash(git log:*)", "workers/reader.md:3:", "workers/builder.md:3:"},
		},
		{
			"a name", "workshop.yaml", "network: none\n", "network: {mode: restricted, allow: [denied.example.org]}\n",
			[]string{"workers/builder.md:4:", "denied.example.org", "workshop.yaml:20:", "workshop.yaml:15:"},
		},
		{
			"a mount", "workshop.yaml", "mounts: [\"./src:/workspace/src\"]", "mounts: [\"./plans:/workspace/plans\"]",
			[]string{"workers/builder.md:4:", "./plans", "workshop.yaml:21:", "workshop.yaml:16:"},
		},
		{
			"a secret", "workshop.yaml", "        mounts: [\"./src:/workspace/src\"]\n        secrets: []", "        mounts: [\"./src:/workspace/src\"]\n        secrets: [token]",
			[]string{"workers/builder.md:4:", "the secret token", "workshop.yaml:22:"},
		},
		{
			"write", "workshop.yaml", "mounts: [\"./src:/workspace/src\", \"./out:/workspace/out:rw\"]", "mounts: [\"./src:/workspace/src:rw\"]",
			[]string{"workshop.yaml:16:", "workshop.yaml:7:", "./src"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.Read(c.file)
			if strings.Count(before, c.old) != 1 {
				t.Fatalf("%s has %q %d times", c.file, c.old, strings.Count(before, c.old))
			}
			s.Write(c.file, strings.Replace(before, c.old, c.new, 1))
			defer s.Write(c.file, before)
			d := s.Run("up")
			if d.Code != 3 {
				t.Errorf("exit code %d", d.Code)
			}
			for _, want := range c.want {
				if !strings.Contains(d.Err, want) {
					t.Errorf("no %q in:\n%s", want, d.Err)
				}
			}
			if l := left(s); l != nil {
				t.Errorf("it started %v", l)
			}
		})
	}
}

// names are the tools that an MCP client sees.
func (c *rpc) names() (out []string) {
	c.t.Helper()
	var list struct{ Tools []struct{ Name string } }
	if a := c.ask("tools/list", `{}`); json.Unmarshal(a.Result, &list) != nil {
		c.t.Fatalf("%s %s", a.Result, a.Error)
	}
	for _, t := range list.Tools {
		out = append(out, t.Name)
	}
	return out
}

// call gives what a tool answered, and whether it did what it was asked to.
func (c *rpc) call(name, args string) (text string, ok bool) {
	c.t.Helper()
	a := c.ask("tools/call", `{"name": "`+name+`", "arguments": `+args+`}`)
	var r struct{ IsError bool }
	if len(a.Result) > 0 {
		_ = json.Unmarshal(a.Result, &r)
	}
	return string(a.Result) + string(a.Error), len(a.Error) == 0 && !r.IsError
}

func TestB40_DelegationNarrows(t *testing.T) {
	s := quiet(scenario.At(t, "the session of a delegate reaches what the delegate is given and nothing of its callers; a worker's file that was edited widens nothing before the next up", chainFiles()))
	s.Up()
	c := newRPC(t, s, "--approve-all", "lead")
	does := func(name, args, part string) {
		t.Helper()
		if text, ok := c.call(name, args); !ok || !strings.Contains(text, part) {
			t.Errorf("%s %s: %s", name, args, text)
		}
	}
	doesNot := func(name, args, part string) {
		t.Helper()
		if text, ok := c.call(name, args); ok || !strings.Contains(text, part) {
			t.Errorf("%s %s: %s", name, args, text)
		}
	}
	const plan, token = `{"path": "/workspace/plans/plan.txt"}`, `{"path": "/run/secrets/token"}`
	const there = `{"url": "http://denied.example.org/"}`
	// The controls: the first of them may.
	does("read_file", plan, "a plan")
	does("read_file", token, "kept-by-lead")
	does("fetch_url", there, "denied.example.org")
	doesNot("builder__read_file", plan, "builder__read_file") // before the delegation

	does("delegate_builder", `{"task": "build"}`, "You build.")
	if n := c.names(); !slices.Contains(n, "builder__read_file") || slices.Contains(n, "builder__list_files") || slices.Contains(n, "builder__reader__read_file") || slices.Contains(n, "delegate_reader") {
		t.Errorf("offered: %v", n)
	}
	does("builder__read_file", `{"path": "/workspace/src/a.txt"}`, "a line")
	does("builder__fetch_url", `{"url": "http://allowed.example.org/"}`, "allowed.example.org")
	doesNot("builder__read_file", plan, "no such file")
	doesNot("builder__read_file", token, "no such file")
	doesNot("builder__fetch_url", there, "denied.example.org")
	doesNot("builder__list_files", `{"path": "/workspace"}`, "builder has no tool list_files")
	doesNot("builder__shell", `{"argv": ["id"]}`, "not one of those that are allowed")
	does("builder__write_file", `{"path": "/workspace/out/b.txt", "content": "b"}`, "b.txt")

	does("builder__delegate_reader", `{"task": "read"}`, "You read.")
	does("builder__reader__read_file", `{"path": "/workspace/src/a.txt"}`, "a line")
	does("builder__reader__shell", `{"argv": ["cat", "/workspace/src/a.txt"]}`, "a line")
	doesNot("builder__reader__read_file", `{"path": "/workspace/out/b.txt"}`, "no such file")
	does("builder__reader__shell", `{"argv": ["cat", "/workspace/out/b.txt"]}`, "[exit code 1]")
	doesNot("builder__reader__write_file", `{"path": "/scratch/x", "content": "x"}`, "reader has no tool write_file")
	doesNot("builder__reader__fetch_url", `{"url": "http://allowed.example.org/"}`, "reader has no tool fetch_url")

	// A file that grants more, within what the caller has: neither a client that
	// is there, nor a new one, nor the toolbox takes it, until up.
	s.Write("workers/reader.md", strings.Replace(s.Read("workers/reader.md"), "Bash(cat:*)", "Bash(cat:*), Write", 1))
	write := []string{"call", "--approve-all", "reader", "write_file", "path=/scratch/x", "content=x"}
	doesNot("builder__reader__write_file", `{"path": "/scratch/x", "content": "x"}`, "reader has no tool write_file")
	if d := s.Run(write...); d.Code != 4 || !strings.Contains(d.Err, "`workshop up`") {
		t.Errorf("code %d\n%s", d.Code, d.Err)
	}
	refusedByToolbox(t, toolboxOf(s, "reader", "tools"), "write_file", `{"path": "/scratch/x", "content": "x"}`)
	if _, err := os.Stat("/scratch/x"); err == nil {
		t.Error("it was written on the host")
	}
	s.Expect(1, "exec", "reader", "--", "test", "-e", "/scratch/x")
	s.Up()
	s.Expect(0, write...)
	s.Expect(0, "exec", "reader", "--", "test", "-e", "/scratch/x")
	if err := toolboxOf(s, "reader", "tools").Call(t.Context(), "call", asked("write_file", `{"path": "/scratch/y", "content": "y"}`), nil); err != nil {
		t.Errorf("after up: %v", err)
	}
}
