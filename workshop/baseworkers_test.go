package workshop

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/tool"
)

// narrowed is a base with a worker that has something of all, which the workshop's container
// has more of, and one to which it delegates.
const narrowedBase = `  container:
    image: x
    mounts: ['./src:/src:rw', './none:/src/key', './docs:/docs:rw', './lib:/lib']
    network: {mode: restricted, allow: [a.example, b.example, c.example], room: own}
    secrets: [{name: one, env: ONE}, {name: two, env: TWO}]
    caches: [go, npm]
    env: {A: base}
  workers:
    - name: w
      container:
        user: "1000"
        env: {A: worker}
        mounts: ['./src:/src:rw', './none:/src/key', './docs:/docs']
        network: {allow: [a.example, b.example], deny: [x.b.example]}
        secrets: [one]
        caches: [go]
        ports: ['8080:8080']
        resources: {memory: 1G}
        tmp: 64M
    - helper
`

func narrowedLibrary() library {
	l := baseOf(narrowedBase, "")
	l[baseFrom]["workers/w.md"] = fileOf("---\nname: w\ntools: Read\ndelegates-to: [helper]\n---\nWork.\n")
	l[baseFrom]["workers/helper.md"] = workerFile("helper", "")
	l[baseFrom]["workshop.yaml"] = fileOf(strings.Replace(string(l[baseFrom]["workshop.yaml"].Data), "    - helper\n",
		"    - {name: helper, container: {network: {allow: [b.example]}, mounts: [], tmp: 64M}}\n", 1))
	return l
}

// B47: a project narrows a worker of its base by its name, although what workers there are
// is closed.
func TestNarrowBasesWorker(t *testing.T) {
	secrets := "  container: {secrets: [{name: one, env: MINE}, {name: two, env: TWO}]}\n"
	w := mustLoad(t, narrowedLibrary(), extending(secrets+"  workers: [{name: w, container: {network: {allow: [b.example], deny: [y.b.example]}, resources: {memory: 512M}}}]\n"))
	c := workerOf(t, w, "w").Container
	if len(w.Workers) != 2 || len(c.Network.Allow) != 1 || len(c.Network.Deny) != 2 || c.Resources.Memory.V != 512<<20 {
		t.Errorf("%s, %d denied, %v", hostsText(&c), len(c.Network.Deny), c.Resources.Memory.V)
	}
	// What isn't named stays: nothing is dropped in silence.
	if len(c.Secrets) != 1 || c.Secrets[0].Env != "MINE" || len(c.Caches) != 1 || len(c.Ports) != 1 || c.Tmp.V != 64<<20 || c.User.V != "1000" || c.Env["A"].V != "worker" || !c.Network.OwnRoom.V || len(c.Mounts) != 3 {
		t.Errorf("%+v", c)
	}
	if other := workerOf(t, w, "helper").Container; other.Resources.Memory.V != 2<<30 {
		t.Errorf("another worker was narrowed: %+v", other.Resources)
	}
	w = mustLoad(t, narrowedLibrary(), extending(secrets+"  workers: [{name: helper, container: {network: none, mounts: []}}, {name: w, container: {network: {allow: []}, mounts: [], secrets: [], caches: []}}]\n"))
	if c := workerOf(t, w, "w").Container; len(c.Network.Allow)+len(c.Mounts)+len(c.Secrets)+len(c.Caches) != 0 {
		t.Errorf("%+v", c)
	}
}

// B41: of its tools a project may leave a base's worker fewer, and those with narrower limits.
func TestNarrowBasesTools(t *testing.T) {
	l := narrowedLibrary()
	l[baseFrom]["workers/w.md"] = fileOf("---\nname: w\ntools: Read, Edit, Bash(git:*)\n---\nWork.\n")
	for list, want := range map[string]int{"[]": 0, "[Read]": 1, "[Edit, Read]": 2, "['Bash(git log:*)']": 1} {
		w := mustLoad(t, l, extending("  container: {secrets: [{name: one, env: ONE}, {name: two, env: TWO}]}\n  workers: [{name: w, tools: "+list+"}]\n"))
		if def := workerOf(t, w, "w").Definition; len(def.Tools) != want || def.Instructions != "Work." || want == 1 && def.Tools[0].Source.Range.Filename != "workshop.yaml" {
			t.Errorf("%s: %+v", list, def)
		}
		if c := workerOf(t, w, "w").Container; c.Tmp.V != 64<<20 || len(c.Network.Allow) != 2 {
			t.Errorf("%s: %+v", list, c)
		}
	}
	a := sharedAttack{l: l, file: extending("  container: {secrets: [{name: one, env: ONE}, {name: two, env: TWO}]}\n  workers: [{name: w, tools: [Read, Bash]}]\n"), codes: "base-widening", says: "w: the base's worker doesn't have the tool Bash"}
	t.Run("a wider limit", a.refused)
}

// What would be more than the base's worker has is refused, with its place.
func TestNarrowBasesWorkerWidens(t *testing.T) {
	secrets := "  container: {secrets: [{name: one, env: ONE}, {name: two, env: TWO}]}\n"
	narrow := func(container string) string {
		return extending(secrets + "  workers: [{name: w, container: {" + container + "}}]\n")
	}
	for _, c := range []sharedAttack{
		{"a host of the workshop", narrowedLibrary(), narrow("network: {allow: [b.example, c.example]}"), "base-widening", "w: c.example"},
		{"a mode", narrowedLibrary(), narrow("network: open"), "base-widening", "w: "},
		{"a shared room", narrowedLibrary(), narrow("network: {room: shared}"), "base-widening", "room"},
		{"resolvers", narrowedLibrary(), narrow("network: {dns: [198.51.100.1]}"), "base-widening", "dns"},
		{"a proxy", narrowedLibrary(), narrow("network: {proxy: 'http://x.example:3128'}"), "base-widening", "proxy"},
		{"a mount of the workshop", narrowedLibrary(), narrow("mounts: ['./lib:/lib']"), "base-widening", "./lib"},
		{"a mount of the project", narrowedLibrary(), narrow("mounts: ['./other:/src']"), "base-widening", "./other"},
		{"a writable mount", narrowedLibrary(), narrow("mounts: ['./docs:/docs:rw']"), "base-widening", "w: "},
		{"what is hidden", narrowedLibrary(), narrow("mounts: ['./src:/src']"), "base-widening", "src/key is covered"},
		{"a secret of the workshop", narrowedLibrary(), narrow("secrets: [one, two]"), "base-widening", "no secret two"},
		{"a cache of the workshop", narrowedLibrary(), narrow("caches: [go, npm]"), "base-widening", "npm"},
		{"memory", narrowedLibrary(), narrow("resources: {memory: 2G}"), "base-widening", "memory 2G is more than the base's 1G"},
		{"tmp", narrowedLibrary(), narrow("tmp: 128M"), "base-widening", "tmp 128M"},
		{"commits in your name", narrowedLibrary(), narrow("git_author: host"), "base-widening", "git_author"},
		{"an image", narrowedLibrary(), narrow("image: evil"), "base-closed", "image of the base's worker w is the base's"},
		{"a build", narrowedLibrary(), narrow("build: ./d"), "base-closed", "build of the base's worker w"},
		{"a user", narrowedLibrary(), narrow("user: \"1001\""), "base-closed", "user of the base's worker w"},
		{"a variable", narrowedLibrary(), narrow("env: {A: evil}"), "base-closed", "env of the base's worker w"},
		{"ports", narrowedLibrary(), narrow("ports: ['9090:9090']"), "base-closed", "ports of the base's worker w"},
		{"a runtime", narrowedLibrary(), narrow("runtime: runc"), "base-closed", "runtime of the base's worker w"},
		{"pull", narrowedLibrary(), narrow("pull: always"), "base-closed", "pull of the base's worker w"},
		{"a caller below its delegate", narrowedLibrary(), narrow("network: {allow: [a.example]}"), "delegate-widening", "w delegates to helper, which reaches more"},
		{"tools", narrowedLibrary(), extending(secrets + "  workers: [{name: w, tools: [Read, Bash], container: {tmp: 1M}}]\n"), "base-widening", "w: the base's worker doesn't have the tool Bash"},
		{"tools alone", narrowedLibrary(), extending(secrets + "  workers: [{name: w, tools: ['Bash(git:*)']}]\n"), "base-widening delegate-widening", "w: the base's worker doesn't have the tool Bash(git:*)"},
		{"tools of nobody", baseOf("  container: {image: x}\n  open: {workers: true}\n  workers: [w]\n", ""), extending("  workers: [{name: v, tools: [Read]}]\n"), "worker-not-found", "the base has no worker v whose tools could be narrowed"},
		{"a toolset", narrowedLibrary(), extending(secrets + "  workers: [{name: w, tools: [Read, mcp__x]}]\n"), "base-widening", "doesn't have the tool mcp__x"},
		{"instructions", narrowedLibrary(), extending("  workers: [{name: w, tools: [Read], instructions: Obey me.}]\n"), "duplicate-worker", "the base has a worker w already"},
		{"delegates", narrowedLibrary(), extending("  workers: [{name: w, tools: [Read], delegates-to: [helper]}]\n"), "duplicate-worker", "the base has a worker w already"},
		{"a model", narrowedLibrary(), extending("  workers: [{name: w, tools: [Read], model: other}]\n"), "duplicate-worker", "the base has a worker w already"},
		{"a file", narrowedLibrary(), extending("  workers: [{name: w, file: workers/own.md, container: {tmp: 1M}}]\n"), "duplicate-worker", "the base has a worker w already"},
		{"a name alone", narrowedLibrary(), extending("  workers: [w]\n"), "duplicate-worker", "the base has a worker w already"},
		{"twice", narrowedLibrary(), extending("  workers: [{name: w, container: {tmp: 1M}}, {name: w, container: {tmp: 2M}}]\n"), "duplicate-worker", "narrowed twice"},
		{"and another worker", narrowedLibrary(), extending("  workers: [{name: w, container: {tmp: 1M}}, own]\n"), "base-closed", "workers is closed"},
		{"a file of its name", baseOf("  container: {image: x}\n  workers: [{name: own, tools: []}]\n", ""), extending("  workers: [{name: own, container: {tmp: 1M}}]\n"), "duplicate-worker", "the project has workers/own.md"},
	} {
		t.Run(c.name, c.refused)
	}
	// Also where the base opens images and ports: one of its workers has its own.
	for key, open := range map[string]string{"image: acme/x": "images: ['acme/*']", "ports: ['9090:9090']": "ports: true", "build: ./d": "build: true"} {
		l := baseOf("  container: {image: x}\n  open: {"+open+"}\n  workers: [w]\n", "")
		a := sharedAttack{l: l, file: extending("  workers: [{name: w, container: {" + key + "}}]\n"), codes: "base-closed", says: "of the base's worker w is the base's"}
		t.Run(open, a.refused)
	}
}

// Of two bases the nearer may narrow a worker of the farther, and the project what is left.
func TestNarrowBasesWorkerInAChain(t *testing.T) {
	const far = "git+https://git.example.org/far"
	l := baseOf("  extends: {from: \""+far+"\"}\n  workers: [{name: w, container: {network: {allow: [a.example, b.example]}, resources: {memory: 1G}}}]\n", "")
	delete(l[baseFrom], "workers/w.md")
	l[far] = fstest.MapFS{"workshop.yaml": fileOf("workshop:\n  name: far\n  container: {image: x, network: {mode: restricted, allow: [a.example, b.example, c.example]}}\n  workers: [w]\n"), "workers/w.md": workerFile("w", "")}
	with := func(container string) string {
		return extending("  workers: [{name: w, container: {" + container + "}}]\n")
	}
	for file, want := range map[string]int{extending(""): 2, with("network: {allow: [a.example]}"): 1} {
		if c := workerOf(t, mustLoad(t, l, file), "w").Container; len(c.Network.Allow) != want || c.Resources.Memory.V != 1<<30 {
			t.Errorf("%s: %s, %v", file, hostsText(&c), c.Resources.Memory.V)
		}
	}
	if w := mustLoad(t, l, extending("  container: {resources: {memory: 512M}}\n")); workerOf(t, w, "w").Container.Resources.Memory.V != 512<<20 {
		t.Error("a project lowers limits for all")
	}
	for _, more := range []string{"network: {allow: [c.example]}", "resources: {memory: 2G}"} {
		a := sharedAttack{l: l, file: with(more), codes: "base-widening", says: "w: "}
		t.Run(more, a.refused)
	}
}

// The keys that a project may write of a base's worker are those that a base's table has as
// narrowing.
func TestNarrowingKeys(t *testing.T) {
	for _, key := range []string{"image", "build", "user", "env", "ports", "runtime", "pull", "workdir"} {
		if slices.Contains(narrowingKeys(), key) {
			t.Errorf("%s doesn't narrow", key)
		}
	}
}

// B47: whatever a project says of its base's worker, that has no more than without a word.
func TestNarrowedHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 47))
	loaded, less := 0, 0
	for range 4000 {
		base := allParts.below(r)
		has := base.below(r)
		const head = "workshop:\n  name: x\n"
		s := sharedFiles{
			base:    head + "  container: " + base.text(r, false, true, "image: x") + "\n  workers: [{name: v, container: " + has.text(r, true, true) + "}]\n",
			project: head + "  extends: {from: \"" + baseFrom + "\"}\n  container: " + base.below(r).text(r, false, true) + "\n",
		}
		l := s.library()
		o := Options{OpenSource: l.open, Home: "/home/me", Root: "/home/me/app"}
		before, _ := Load(t.Context(), l[""], "workshop.yaml", o)
		if before == nil {
			continue
		}
		s.project += "  workers: [{name: v, container: " + has.below(r).text(r, true, true) + "}]\n"
		l = s.library()
		delete(l[""], "workers/v.md")
		after, list := Load(t.Context(), l[""], "workshop.yaml", o)
		if after == nil {
			if !list.HasErrors() {
				t.Fatalf("no workshop and no error of\n%s", s)
			}
			continue
		}
		loaded++
		a, b := workerOf(t, before, "v").Container, workerOf(t, after, "v").Container
		if !reflect.DeepEqual(a, b) {
			less++
		}
		noMore(t, "v", &b, a, s)
		if a.Image != b.Image || !reflect.DeepEqual(a.Env, b.Env) || a.User != b.User || !reflect.DeepEqual(a.Ports, b.Ports) || len(b.Network.Deny) < len(a.Network.Deny) && b.Network.Mode.V != firewall.None {
			t.Fatalf("the worker has another image, variables, user, ports or denied hosts of\n%s", s)
		}
	}
	if loaded < 60 || less < 40 {
		t.Errorf("only %d are workshops, and %d narrow", loaded, less)
	}
}

// B41: whatever tools a project names for its base's worker, that is offered none that it
// isn't offered without a word.
func TestNarrowedToolsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 41))
	all := []string{"Read", "Grep", "Edit", "Bash", "Bash(git:*)", "Bash(git log:*)", "Bash(git log)", "Bash(go test:*)", "WebFetch", "WebFetch(domain:a.example)"}
	pick := func() []string {
		var out []string
		for _, x := range all {
			if r.IntN(3) == 0 {
				out = append(out, x)
			}
		}
		return out
	}
	loaded, refused := 0, 0
	for range 600 {
		has, wants := pick(), pick()
		l := baseOf("  container: {image: x}\n  workers: [w]\n", "")
		l[baseFrom]["workers/w.md"] = fileOf("---\nname: w\ntools: [" + strings.Join(has, ", ") + "]\n---\nWork.\n")
		offers := workerOf(t, mustLoad(t, l, extending("")), "w").Definition.Offers()
		after, list := loadShared(t, l, extending("  workers: [{name: w, tools: ['"+strings.Join(wants, "', '")+"']}]\n"))
		if after == nil {
			if !list.HasErrors() {
				t.Fatalf("%q of %q: %v", wants, has, list)
			}
			refused++
			continue
		}
		loaded++
		if more := tool.Excess(workerOf(t, after, "w").Definition.Offers(), offers); len(more) > 0 {
			t.Fatalf("%q of %q: it is offered %v besides", wants, has, more)
		}
	}
	if loaded < 20 || refused < 100 {
		t.Errorf("%d are workshops, %d are refused", loaded, refused)
	}
}

// said are the errors of a file, each with its hint and where it leads.
func said(t *testing.T, l library, file string) string {
	t.Helper()
	_, list := loadShared(t, l, file)
	var b strings.Builder
	for _, d := range list {
		if d.Severity != diag.Error {
			continue
		}
		fmt.Fprintf(&b, "%s: %s: %s | %s", d.Range, d.Code, d.Summary, d.Hint)
		for _, r := range d.Related {
			fmt.Fprintf(&b, " | %s: %s", r.Range, r.Message)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// What the base's worker has, and the project's own container took away, is for the project
// to add, not for those who keep the base.
func TestNarrowBasesWorkerBeyondTheProject(t *testing.T) {
	l := baseOf("  container: {image: x, network: {mode: restricted, allow: [a.example, b.example]}, mounts: ['./src:/src', './docs:/docs'], caches: [go], secrets: [{name: one, env: ONE}]}\n"+
		"  workers: [{name: w, container: {secrets: [one], caches: [go], resources: {memory: 1G}}}]\n", "")
	secret := "secrets: [{name: one, env: ONE}]"
	for _, c := range []struct{ name, container, item, want, hint string }{
		{"a host", secret + ", network: {allow: [a.example]}", "network: {allow: [b.example]}", "w: b.example port 80,443 is not covered by a line of the workshop's allow", "add it to the workshop's allow"},
		{"a mount", secret + ", mounts: ['./src:/src']", "mounts: ['./docs:/docs']", "the workshop's mounts", "to the mounts of the workshop's container"},
		{"a cache", secret + ", caches: []", "caches: [go]", "w: the workshop has no cache go", "add `go` to the caches of the workshop's container"},
		{"a limit", secret + ", resources: {memory: 512M}", "resources: {memory: 1G}", "w: memory 1G is more than the workshop's 512M", "raise resources.memory in the workshop's container"},
		{"a secret", "tmp: 64M", "secrets: [one]", "w: the workshop has no secret one", "add `- {name: one, env: …}` to the secrets of the workshop's container"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := said(t, l, extending("  container: {"+c.container+"}\n  workers: [{name: w, container: {"+c.item+"}}]\n"))
			if !strings.Contains(got, c.want) || !strings.Contains(got, c.hint) || strings.Contains(got, "base-widening") || strings.Contains(got, "those who keep the base") {
				t.Errorf("got %s", got)
			}
		})
	}
	got := said(t, l, extending("  container: {"+secret+", network: {allow: [a.example]}}\n  workers: [{name: w, container: {network: {allow: [b.example]}}}]\n"))
	if !strings.Contains(got, "| workshop.yaml:4:") {
		t.Errorf("the project's line isn't named: %s", got)
	}
	// A secret that the base's container has, and its worker doesn't.
	l = baseOf("  container: {image: x, secrets: [{name: one, env: ONE}]}\n  workers: [w]\n", "")
	got = said(t, l, extending("  container: {"+secret+"}\n  workers: [{name: w, container: {secrets: [one]}}]\n"))
	if !strings.Contains(got, "base-widening: w: the base's worker has no secret one | leave it out: more is for those who keep the base") {
		t.Errorf("got %s", got)
	}
}

// What a base can't open is asked for in its container.
func TestBeyondTheBaseHint(t *testing.T) {
	l := baseOf("  container: {image: x, network: {mode: restricted, allow: [a.example]}}\n  workers: [w]\n", "")
	for container, want := range map[string]string{
		"secrets: [{name: two, env: TWO}]": "leave it out, or ask for `secrets: [{name: two, env: …}]` in the container of the base",
		"caches: [go]":                     "leave it out, or ask for it in the container of the base",
		"network: open":                    "leave it out, or ask for it in the container of the base",
		"network: {allow: [b.example]}":    "leave it out, or ask for it below `open:` of the base",
		"resources: {memory: 64G}":         "leave it out, or ask for it below `open:` of the base",
	} {
		if got := said(t, l, extending("  container: {"+container+"}\n")); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", container, got)
		}
	}
	l = baseOf("  container: {image: x, secrets: [{name: two, env: ANY}]}\n  workers: [w]\n", "")
	mustLoad(t, l, extending("  container: {secrets: [{name: two, env: TWO}]}\n"))
}

// A slip in the name of a base's worker says so in all forms, and what is suggested else is
// accepted.
func TestNameOverABase(t *testing.T) {
	named := func(open string) library {
		l := baseOf("  container: {image: x}\n"+open+"  workers: [reviewer]\n", "")
		l[baseFrom]["workers/reviewer.md"] = workerFile("reviewer", "")
		return l
	}
	open := named("  open: {workers: true}\n")
	for _, item := range []string{"reviewr", "{name: reviewr, container: {network: none}}", "{name: reviewr, tools: [Read]}", "{name: reviewr, tools: [Read], container: {network: none}}", "{name: reviewr, file: workers/reviewr.md}"} {
		got := said(t, open, extending("  workers: ["+item+"]\n"))
		if !strings.Contains(got, "| did you mean reviewer, of the base? Else define it here, `- {name: reviewr, tools: [Read, Grep], instructions: …}`") {
			t.Errorf("%s: got %s", item, got)
		}
		got = said(t, named(""), extending("  workers: ["+item+"]\n"))
		if !strings.Contains(got, "| did you mean reviewer, of the base") || strings.Contains(got, "define it here") {
			t.Errorf("%s, of a base that is closed: got %s", item, got)
		}
	}
	for item, want := range map[string]string{"nobody": "| leave it out, or ask for it below `open:`", "{name: nobody, tools: [Read]}": "the base has reviewer, and lets no project have workers of its own"} {
		if got := said(t, named(""), extending("  workers: ["+item+"]\n")); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", item, got)
		}
	}
	if got := said(t, open, extending("  workers: [{name: own, tools: [Read]}]\n")); !strings.Contains(got, "leave `tools` out: there is a file for own") {
		t.Errorf("got %s", got)
	}
	mustLoad(t, open, extending("  workers: [{name: reviewr, tools: [Read, Grep], instructions: …}, own]\n"))
	// Without a base instructions aren't needed.
	if got := said(t, open, "workshop:\n  name: x\n  container: {image: x}\n  workers: [nobody]\n"); !strings.Contains(got, "`- {name: nobody, tools: [Read, Grep]}`") {
		t.Errorf("got %s", got)
	}
}

// A name that is no tool is none that the base's worker has.
func TestNarrowBasesToolsUnknown(t *testing.T) {
	for _, name := range []string{"raed_file", "WebSearch"} {
		got := said(t, narrowedLibrary(), extending("  container: {secrets: [{name: one, env: ONE}, {name: two, env: TWO}]}\n  workers: [{name: w, tools: ["+name+"]}]\n"))
		if !strings.Contains(got, "worker-unknown-tool: w: ") || !strings.Contains(got, name) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// An import's worker isn't one of the file's own.
func TestImportsWorkerListed(t *testing.T) {
	got := said(t, both(), strings.Replace(imports, "workers: [own]", "workers: [own, {name: sast--scanner, tools: [read_file]}]", 1))
	if !strings.Contains(got, "`grant: {sast: {…}}` says what those of sast get, and their tools are the import's; for one of your own write sast-scanner") {
		t.Errorf("got %s", got)
	}
}
