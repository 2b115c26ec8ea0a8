package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/engine"
)

const grantedFile = `workshop:
  name: granted
  container:
    image: host
    network: {mode: restricted, allow: [a.example.org, {preset: npm}], deny: [d.example.org]}
    mounts: [".:/workspace", "./out:/out:rw"]
    resources: {memory: 2G, cpu: 1, pids: 64}
    env: {A: one, B: two}
  workers:
    - one
    - two
`

// grantedProject reads a workshop as `up` grants it.
func grantedProject(t *testing.T, env *Env, text, tools string) *Project {
	t.Helper()
	for name, text := range map[string]string{
		"workshop.yaml":  text,
		"workers/one.md": "---\nname: one\ndescription: does nothing\nallowed-tools: " + tools + "\n---\nNothing.\n",
		"workers/two.md": "---\nname: two\ndescription: does nothing\nallowed-tools: Read\n---\nNothing.\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(env.Dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(env.Dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env.Events = func(e Event) { t.Log(e.Plain()) }
	c, err := env.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGrantChanges: what differs from the grant of the last `up` is said facet by
// facet, and values of the environment, which may be secrets, are not.
func TestGrantChanges(t *testing.T) {
	for _, c := range []struct {
		name, old, new, tools string
		want, left            string
	}{
		{name: "nothing", tools: "Bash, Read"},
		{"memory", "memory: 2G", "memory: 1G", "Bash, Read", "memory 2G → 1G", "memory 2G → 1G"},
		{"mounts", `".:/workspace", "./out:/out:rw"`, `".:/workspace:rw", "./docs:/docs"`, "Bash, Read",
			"+ ./docs at /docs ro, − ./out at /out rw, . at /workspace ro → . at /workspace rw", "+ ./docs at /docs ro, − ./out at /out rw, . at /workspace ro → . at /workspace rw"},
		{"lines", "[a.example.org, {preset: npm}]", `["*.b.example.org", a.example.org:22]`, "Bash, Read",
			`network: + *.b.example.org tcp/80,443, + a.example.org tcp/22, − a.example.org tcp/80,443, and 1 more`, ""},
		{"a preset", ", {preset: npm}", "", "Bash, Read", "network: − preset npm", ""},
		{"deny", "deny: [d.example.org]", "deny: []", "Bash, Read", "network: − deny d.example.org tcp", ""},
		{"mode", "{mode: restricted, allow: [a.example.org, {preset: npm}], deny: [d.example.org]}", "none", "Bash, Read",
			"network restricted → none; network: − a.example.org tcp/80,443, − preset npm, − deny d.example.org tcp", "network restricted → none"},
		{"tools", "", "", "Bash(go:*), Bash(git:*), Glob", "tools: + list_files, − read_file, shell → shell go:*, shell git:*", "tools: + list_files, − read_file, shell → shell go:*, shell git:*"},
		{"environment", "{A: one, B: two}", "{A: other, C: two}", "Bash, Read", "env: A changed, − B, + C", "env: A changed, − B, + C"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			env := &Env{Dir: dir, Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}
			before := grantedProject(t, env, grantedFile, "Bash, Read")
			unknown := GrantChanges{"one": {Partial: true}, "two": {Partial: true}}
			if diff := cmp.Diff(unknown, env.GrantChanges(before)); diff != "" {
				t.Errorf("without a record: -want +got:\n%s", diff)
			}
			noteProject(t, env, before)
			if diff := cmp.Diff(unknown, env.GrantChanges(before)); diff != "" {
				t.Errorf("before the first up has ended: -want +got:\n%s", diff)
			}
			env.keepGrants(before, nil, true)
			now := grantedProject(t, env, strings.Replace(grantedFile, c.old, c.new, 1), c.tools)
			got := env.GrantChanges(now)["one"]
			if diff := cmp.Diff(GrantChange{c.want, c.left, strings.Contains(c.want, " more")}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			env.keepLines(now)
			if got := env.GrantChanges(now)["one"].Text; got != c.left {
				t.Errorf("after a reload: %q, want %q", got, c.left)
			}
			env.keepGrants(now, []string{"two"}, true)
			if got := env.GrantChanges(now)["one"].Text; got != c.left {
				t.Errorf("after an up of another worker: %q, want %q", got, c.left)
			}
			env.keepGrants(now, nil, true)
			if got := env.GrantChanges(now); len(got) != 0 {
				t.Errorf("after up: %v", got)
			}
		})
	}
}

// TestGrantThatNoUpHasSaid: what a call or a reload made of a worker is said as a whole by
// the next `up`, which else says what changed alone; and so is more than that names.
func TestGrantThatNoUpHasSaid(t *testing.T) {
	env := &Env{Dir: t.TempDir(), Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}
	first := grantedProject(t, env, grantedFile, "Bash, Read")
	noteProject(t, env, first)
	whole := func(step string, c *Project, want bool) {
		t.Helper()
		if got := (&Changes{Granted: env.GrantChanges(c)}).Whole("one"); got != want {
			t.Errorf("%s: as a whole: got %v, want %v", step, got, want)
		}
	}
	env.keepGrants(first, nil, false)
	whole("started by a call", first, true)
	env.keepGrants(first, []string{"two"}, true)
	whole("then an up of another worker", first, true)
	env.keepGrants(first, nil, true)
	whole("after up", first, false)
	env.keepGrants(first, nil, false)
	env.keepLines(first)
	whole("a call and a reload that changed nothing", first, false)

	lines := grantedProject(t, env, strings.Replace(grantedFile, "deny: [d.example.org]", "deny: []", 1), "Bash, Read")
	whole("one line of the network", lines, false)
	env.keepLines(lines)
	whole("after a reload of it", lines, true)
	env.keepGrants(lines, nil, true)
	whole("and an up", lines, false)

	mounts := grantedProject(t, env, strings.Replace(grantedFile, `".:/workspace"`, `".:/workspace", "./a:/a", "./b:/b", "./c:/c", "./d:/d"`, 1), "Bash, Read")
	whole("more mounts than are named", mounts, true)
}

// noteProject makes the record that `up` makes before anything starts.
func noteProject(t *testing.T, env *Env, c *Project) {
	t.Helper()
	ready := *c.Compiled
	ready.Facts = nil
	r, err := env.Record(c.Name)
	if err != nil || r != nil {
		t.Fatal(r, err)
	}
	dir := filepath.Join(env.recordsDir(), c.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "project.json"), []byte(`{"Project":"`+c.Name+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What was done to a worker has its reason; "configuration changed" alone where none is
// known.
func TestChangesText(t *testing.T) {
	memory, lines := GrantChange{"memory 2G → 1G", "memory 2G → 1G", false}, GrantChange{"network: + a.example.org", "", false}
	recreated := []engine.Op{engine.OpRemoveContainer, engine.OpCreateContainer, engine.OpStartContainer}
	for _, c := range []struct {
		name    string
		ops     []engine.Op
		cause   string
		granted GrantChange
		want    string
		whole   bool
	}{
		{"unchanged", nil, "", GrantChange{}, "unchanged", false},
		{"updated", nil, "", lines, "updated (network: + a.example.org)", false},
		{"recreated", recreated, engine.ConfigurationChanged, memory, "recreated (memory 2G → 1G)", false},
		{"not known why", recreated, engine.ConfigurationChanged, GrantChange{Partial: true}, "recreated (configuration changed)", true},
		{"nothing was known", nil, "", GrantChange{Partial: true}, "unchanged", true},
		{"another reason", recreated, engine.ConfigurationChanged, lines, "recreated (configuration changed; network: + a.example.org)", false},
		{"its image", recreated, "image changed", memory, "recreated (image changed; memory 2G → 1G)", false},
		{"its image alone", recreated, "image changed", GrantChange{}, "recreated (image changed)", false},
		{"started", recreated[2:], "exited", lines, "started (network: + a.example.org)", false},
		{"created", recreated[1:], "not found", lines, "created", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes := Changes{Granted: GrantChanges{"w": c.granted}}
			for _, op := range c.ops {
				changes.Add(engine.Event{Status: engine.StepDone, Step: engine.Step{Op: op, Target: "container/p-w-1", Service: "w", Cause: c.cause}})
			}
			if got := changes.Text("w"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := changes.Whole("w"); got != c.whole {
				t.Errorf("as a whole: got %v, want %v", got, c.whole)
			}
		})
	}
}

// A plan is told in a line per object, workers that keep their container too.
func TestPlanLines(t *testing.T) {
	changed := GrantChanges{"one": {"memory 2G → 1G", "memory 2G → 1G", false}, "two": {"network: + a.example.org", "", false}, "three": {Partial: true}}
	p := &engine.Plan{Steps: []engine.Step{
		{Op: engine.OpFillTools, Target: "volume/tools"},
		{Op: engine.OpRemoveContainer, Target: "container/p-one-1", Service: "one", Cause: engine.ConfigurationChanged},
		{Op: engine.OpCreateContainer, Target: "container/p-one-1", Service: "one", Cause: engine.ConfigurationChanged},
		{Op: engine.OpStartContainer, Target: "container/p-one-1", Service: "one", Cause: "created"},
		{Op: engine.OpWaitReady, Target: "container/p-one-1", Service: "one", Cause: "started"},
	}}
	want := []string{"recreate one (memory 2G → 1G)", "update two (network: + a.example.org)"}
	if diff := cmp.Diff(want, changed.PlanLines(p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.Desired.Only = []string{"one"}
	if diff := cmp.Diff(want[:1], changed.PlanLines(p)); diff != "" {
		t.Errorf("of one worker, -want +got:\n%s", diff)
	}
}
