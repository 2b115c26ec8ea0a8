package compose

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
	toolfile "github.com/llmdo/workshop/workshop/worker"
)

func gateTools(t *testing.T, words []string) tool.Grant {
	t.Helper()
	for i, w := range words {
		if w == toolsFlag {
			var g tool.Grant
			if err := json.Unmarshal([]byte(words[i+1]), &g); err != nil {
				t.Fatal(err)
			}
			return g
		}
	}
	t.Fatalf("no %s in %q", toolsFlag, words)
	return tool.Grant{}
}

// The gate is told the tools of the worker's file, with their limits, and the
// MCP servers that they name, and no other.
func TestGateKnowsTheTools(t *testing.T) {
	w := sample(t, 2)
	w.MCP = []workshop.MCPServer{
		{Name: "issues", Command: []string{"issue-server", "$HOME", "it's \"x\""}, Env: map[string]string{"B": "<&>", "A": "${X}"}, Secrets: map[string]string{"TOKEN": "token"}},
		{Name: "other", Command: []string{"other"}},
	}
	w.Workers[0].Definition.Tools = []toolfile.Tool{
		{Name: tool.ReadFile, Source: at(4)}, {Name: tool.Shell, Pattern: "git:*"}, {Name: "mcp__issues__list"}, {Name: "mcp__elsewhere"},
	}
	c := compiled(t, w)
	want := tool.Grant{
		Worker: "worker-0", TimeoutMS: tool.Millis((10 * time.Minute).Milliseconds()),
		Tools: []tool.Offer{{Name: tool.ReadFile}, {Name: tool.Shell, Limit: "git:*"}, {Name: "mcp__issues__list"}},
		MCP:   map[string]tool.Server{"issues": {Command: w.MCP[0].Command, Env: w.MCP[0].Env, Secrets: w.MCP[0].Secrets}},
	}
	if diff := cmp.Diff(want, gateTools(t, c.Project.Services["worker-0"].Entrypoint)); diff != "" {
		t.Errorf("the grant of the tools (-want +got):\n%s", diff)
	}
	if g := gateTools(t, c.Project.Services["worker-1"].Entrypoint); len(g.Tools) != 0 || len(g.MCP) != 0 {
		t.Errorf("a worker without tools has %+v", g)
	}
	// The rendered file means the same, dollars and quotes too.
	sameProject(t, c.Project, load(t, composeYAML(t, c), nil))
}

// The engine takes no path through a mount: there it starts in /, and the gate
// goes on.
func TestWorkdir(t *testing.T) {
	for _, test := range []struct{ name, dir, gates, engines string }{
		{"in the root", "/workspace", "/workspace", "/workspace"},
		{"above a mount", "/workspace/other", "/workspace/other", "/workspace/other"},
		{"like a mount", "/workspace/src2", "/workspace/src2", "/workspace/src2"},
		{"a mount", "/workspace/src", "/workspace/src", "/"},
		{"below a mount", "/workspace/output/a/b", "/workspace/output/a/b", "/"},
		{"below a mount by dots", "/workspace/x/../output/a", "/workspace/x/../output/a", "/"},
		{"a tmpfs", "/scratch/x", "/scratch/x", "/"},
		{"home", "", homeDir, "/"},
		{"the kernel's", "/proc/self/fd/7", "/proc/self/fd/7", "/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := sample(t, 1)
			w.Workers[0].Container.Workdir = val(test.dir)
			c := compiled(t, w)
			s := c.Project.Services["worker-0"]
			at := slices.Index(s.Entrypoint, workdirFlag)
			if at < 0 || s.Entrypoint[at+1] != test.gates || s.WorkingDir != test.engines {
				t.Errorf("got %q and %q", s.Entrypoint, s.WorkingDir)
			}
			sameProject(t, c.Project, load(t, composeYAML(t, c), nil))
		})
	}
}

// B45: a timeout that is a variable stays one in the generated file.
func TestTimeoutStaysAVariable(t *testing.T) {
	w := sample(t, 1)
	k := &w.Workers[0].Container.Resources
	k.Timeout = workshop.Value[time.Duration]{V: 90 * time.Second, Source: diag.Source{Template: "${LIMIT:-90s}"}}
	c := compiled(t, w)
	data := string(composeYAML(t, c))
	if !strings.Contains(data, `"timeout":"${LIMIT:-90s}"`) || strings.Contains(data, "1m30s") {
		t.Errorf("the variable is gone:\n%s", data)
	}
	p := load(t, []byte(data), map[string]string{"LIMIT": "5s"})
	if g := gateTools(t, p.Services["worker-0"].Entrypoint); g.TimeoutMS != 5000 {
		t.Errorf("a call may take %v", g.Timeout())
	}
}

// More than fits into an argument is an error of the compile, not of the start.
func TestTooManyTools(t *testing.T) {
	w := sample(t, 1)
	w.MCP = []workshop.MCPServer{{Name: "large", Command: []string{"x", strings.Repeat("x", 100<<10)}}}
	w.Workers[0].Definition.Tools = []toolfile.Tool{{Name: "mcp__large"}}
	if _, err := Compile(w); err == nil || !strings.Contains(err.Error(), "worker-0") {
		t.Errorf("Compile = %v", err)
	}
}

// The door is bound where there is a runtime directory on this machine, and
// plain Compose gets none.
func TestDoor(t *testing.T) {
	c := compiled(t, sample(t, 1))
	has := func(c *Compiled) bool {
		for _, v := range c.Project.Services["worker-0"].Volumes {
			if v.Target == DialInDir {
				return v.Source == "/run/user/1000/workshop/x/door-worker-0" && v.ReadOnly
			}
		}
		return false
	}
	full := withFacts(t, c, sampleFacts())
	if !has(full) {
		t.Error("no door")
	}
	files, err := RenderFacts(full)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.Contains(string(f.Data), DialInDir) {
			t.Errorf("%s has the door", f.Path)
		}
	}
	without := sampleFacts()
	without.RuntimeDir = ""
	if none, _ := WithFacts(c, without); has(none) || len(DialInPaths(none, without)) != 0 {
		t.Error("a door without a runtime directory")
	}
}
