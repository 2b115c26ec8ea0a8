package workshop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/diag"
)

// library are sources by their addresses, in the form of a file system.
type library map[string]fstest.MapFS

func (l library) open(_ context.Context, ref SourceRef) (SourceFiles, error) {
	files, ok := l[ref.From]
	if !ok {
		return SourceFiles{}, &SourceError{Code: "source-not-locked", Summary: ref.From + " isn't locked", Hint: "run `workshop lock`"}
	}
	commit := "c"
	if strings.HasPrefix(ref.Version, "v") {
		commit = ref.Version
	}
	return SourceFiles{ID: strings.TrimPrefix(strings.TrimSuffix(ref.From, "/"), "git+https://"), Commit: commit, Files: files}, nil
}

func fileOf(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

const workerText = "---\nname: %s\ndescription: Works\ntools: Read%s\n---\nWork.\n"

func workerFile(name, more string) *fstest.MapFile {
	return fileOf(fmt.Sprintf(workerText, name, more))
}

// baseRepo is a base, and sastRepo what is imported.
func baseRepo(more string) fstest.MapFS {
	return fstest.MapFS{
		"workshop.yaml": fileOf(`workshop:
  name: go-review
  container:
    image: worker:1
    network: {mode: restricted, allow: [proxy.golang.org, sum.golang.org], deny: [gist.github.com]}
    mounts: ["./src:/workspace/src", "./output:/output:rw"]
    resources: {memory: 1G}
    env: {LANG: C.UTF-8}
    secrets: [{name: token, env: BASE_TOKEN}]
    caches: [go]
  workers:
    - reviewer
    - name: tester
      container: {caches: [go], resources: {memory: 1G}}
` + more),
		"workers/reviewer.md": workerFile("reviewer", "\ndelegates-to: tester"), "workers/tester.md": workerFile("tester", ""),
	}
}

const sastFile = `workshop:
  name: sast-workers
  needs:
    network: {mode: restricted, allow: [api.sast.example]}
    secrets: [sast_token]
    mounts: [{target: /workspace/src}]
  workers:
    - scanner
    - {name: helper, container: {network: none, mounts: [], secrets: []}}
`

func sastRepo(file string) fstest.MapFS {
	return fstest.MapFS{"workshop.yaml": fileOf(file), "workers/scanner.md": workerFile("scanner", "\ndelegates-to: helper"), "workers/helper.md": workerFile("helper", "")}
}

const (
	baseFrom = "git+https://git.example.org/acme/workshops//go-review"
	sastFrom = "git+https://git.example.org/acme/sast"
)

func both() library {
	return library{baseFrom: baseRepo(""), sastFrom: sastRepo(sastFile)}
}

const sharedProject = `workshop:
  name: app
  extends: {from: "` + baseFrom + `", version: ^1.4}
  imports:
    - {as: sast, from: "` + sastFrom + `", version: ^2}
  grant:
    sast:
      network: {mode: restricted, allow: [api.sast.example]}
      secrets: [sast_token]
      mounts: ["./src:/workspace/src"]
  container:
    image: worker:1
    network: {mode: restricted, allow: [api.sast.example]}
    mounts: ["./src:/workspace/src", "./output:/output:rw"]
    secrets: [{name: sast_token, env: SAST}]
  workers: [own]
`

// imports is the project without its base.
var imports = strings.Replace(sharedProject, "  extends: {from: \""+baseFrom+"\", version: ^1.4}\n", "", 1)

// extending is a project with a base alone, and what it says.
func extending(rest string) string {
	return "workshop:\n  name: app\n  extends: {from: \"" + baseFrom + "\"}\n" + rest
}

func loadShared(t testing.TB, l library, file string) (*Workshop, diag.List) {
	t.Helper()
	return Load(t.Context(), fstest.MapFS{"workshop.yaml": fileOf(file), "workers/own.md": workerFile("own", "")}, "workshop.yaml", Options{OpenSource: l.open})
}

func mustLoad(t testing.TB, l library, file string) *Workshop {
	t.Helper()
	w, list := loadShared(t, l, file)
	if w == nil {
		t.Fatalf("%s\n%s", list.Error(), file)
	}
	return w
}

func workerOf(t testing.TB, w *Workshop, name string) *Worker {
	t.Helper()
	i := slices.IndexFunc(w.Workers, func(k Worker) bool { return k.Name == name })
	if i < 0 {
		t.Fatalf("no worker %s", name)
	}
	return &w.Workers[i]
}

func hostsText(c *Container) string {
	var out []string
	for _, r := range c.Network.Allow {
		out = append(out, r.Target())
	}
	return c.Network.Mode.V.String() + " " + strings.Join(out, " ")
}

func mountsText(c *Container) string {
	var out []string
	for i := range c.Mounts {
		out = append(out, c.Mounts[i].Entry())
	}
	return strings.Join(out, " ")
}

// B47: an imported worker has what its file needs of what it is granted.
func TestImports(t *testing.T) {
	w := mustLoad(t, both(), imports)
	var names []string
	for _, k := range w.Workers {
		names = append(names, k.Name)
	}
	if got := strings.Join(names, " "); got != "own sast--scanner sast--helper" {
		t.Fatal(got)
	}
	k := workerOf(t, w, "sast--scanner")
	if got := hostsText(&k.Container); got != "restricted api.sast.example" {
		t.Error(got)
	}
	if got := mountsText(&k.Container); got != "./src:/workspace/src" {
		t.Error(got)
	}
	if len(k.Container.Secrets) != 1 || k.Container.Secrets[0].Env != "SAST" {
		t.Error(k.Container.Secrets)
	}
	if k.From != "git.example.org/acme/sast" || k.File != sastFrom+"/workers/scanner.md" || k.Definition.DelegatesTo[0].Name != "sast--helper" {
		t.Error(k.From, k.File, k.Definition.DelegatesTo)
	}
	if k.Container.Image.V != "worker:1" {
		t.Error(k.Container.Image)
	}
	k = workerOf(t, w, "sast--helper")
	if got := hostsText(&k.Container) + mountsText(&k.Container); got != "none " || len(k.Container.Secrets) > 0 {
		t.Error(got, k.Container.Secrets)
	}
	if len(w.Sources) != 1 || w.Sources[0].ID != "git.example.org/acme/sast" || w.Sources[0].Original != "^2" || strings.Join(w.Sources[0].Via, " ") != "workshop.yaml" {
		t.Error(w.Sources)
	}
}

// B47: without a grant an imported worker has nothing of the project's, and the
// project's variables are not its own.
func TestImportsWithoutGrant(t *testing.T) {
	file := strings.Replace(strings.Replace(imports, "  grant:\n", "  # grant:\n", 1), "    secrets: [{name", "    env: {A: b}\n    secrets: [{name", 1)
	file = strings.NewReplacer("    sast:\n", "", "      network: {mode: restricted, allow: [api.sast.example]}\n      secrets: [sast_token]\n      mounts: [\"./src:/workspace/src\"]\n", "").Replace(file)
	l := both()
	l[sastFrom] = sastRepo("workshop:\n  name: sast\n  workers: [scanner, helper]\n")
	w := mustLoad(t, l, file)
	c := workerOf(t, w, "sast--scanner").Container
	if got := hostsText(&c) + mountsText(&c); got != "none " || len(c.Secrets)+len(c.Env)+len(c.Ports)+len(c.Caches) != 0 {
		t.Error(got, c)
	}
	if own := workerOf(t, w, "own").Container; hostsText(&own) != "restricted api.sast.example" || len(own.Env) != 1 {
		t.Error(hostsText(&own), own.Env)
	}
}

// B47: a project narrows its base, key by key.
func TestExtends(t *testing.T) {
	w := mustLoad(t, both(), extending(`  container:
    network: {allow: [proxy.golang.org], deny: [sum.golang.org]}
    mounts: ["./src/api:/workspace/src"]
    resources: {memory: 512M}
    env: {LANG: de_DE.UTF-8, A: b}
`))
	if w.Name.V != "app" {
		t.Error(w.Name)
	}
	k := workerOf(t, w, "tester")
	if got := hostsText(&k.Container); got != "restricted proxy.golang.org" {
		t.Error(got)
	}
	if got := mountsText(&k.Container); got != "./src/api:/workspace/src" || strings.Join(k.Container.Mounts[0].Within, " ") != "./src" {
		t.Error(got, k.Container.Mounts[0].Within)
	}
	if len(k.Container.Network.Deny) != 2 || k.Container.Env["LANG"].V != "de_DE.UTF-8" || k.Container.Env["A"].V != "b" {
		t.Error(k.Container.Network.Deny, k.Container.Env)
	}
	if got := k.Container.Resources.Memory.V.String(); got != "512M" {
		t.Error("a worker of the base has more than the project:", got)
	}
	if len(k.Container.Caches) != 1 || len(w.Container.Secrets) != 0 {
		t.Error(k.Container.Caches, w.Container.Secrets)
	}
	// Without a word it is the base, but for the secrets.
	w = mustLoad(t, both(), extending(""))
	if got := hostsText(&w.Container) + mountsText(&w.Container); got != "restricted proxy.golang.org sum.golang.org./src:/workspace/src ./output:/output:rw" || len(w.Container.Secrets) > 0 {
		t.Error(got, w.Container.Secrets)
	}
	if w = mustLoad(t, both(), extending("  container: {secrets: [{name: token, env: MINE}]}\n")); w.Container.Secrets[0].Env != "MINE" {
		t.Error(w.Container.Secrets)
	}
}

// B47: what a base opens, and what its projects may add then.
func TestOpen(t *testing.T) {
	l := both()
	l[baseFrom] = baseRepo(`  open:
    network: {allow: [{preset: npm}, api.acme.example]}
    mounts: [./docs, "./gen:rw"]
    images: [ghcr.io/acme/*, node]
    workers: true
    approvals: true
    mcp: true
    ports: true
    resources: {memory: 8G}
    scratch: 1G
`)
	w := mustLoad(t, l, extending(`  container:
    image: ghcr.io/acme/go:2
    network: {mode: restricted, allow: [api.acme.example, {preset: npm}]}
    mounts: ["./docs/api:/docs", "./gen:/gen:rw", "./src:/workspace/src"]
    resources: {memory: 4G}
    scratch: 512M
  approvals: {rules: [{tool: shell, match: "go test", approval: auto}]}
  mcp: {hub: {command: hub}}
  workers: [own]
`))
	if k := workerOf(t, w, "own"); k.Container.Image.V != "ghcr.io/acme/go:2" || k.Container.Resources.Memory.V != 4<<30 || k.From != "" {
		t.Errorf("%+v", k.Container)
	}
	if len(w.MCP) != 1 || len(w.Approvals.Rules) != 1 {
		t.Error(w.MCP, w.Approvals)
	}
	base := mustLoad(t, l, string(l[baseFrom]["workshop.yaml"].Data[:0])+extending(""))
	if len(base.Open) != 0 {
		t.Error("the project opens what its base does:", base.Open)
	}
	for name, rest := range map[string]string{
		"another host":       "  container: {network: {allow: [evil.example]}}\n",
		"mode open":          "  container: {network: open}\n",
		"another mount":      "  container: {mounts: [\"./secrets:/x\"]}\n",
		"a writable mount":   "  container: {mounts: [\"./docs:/docs:rw\"]}\n",
		"more memory":        "  container: {resources: {memory: 9G}}\n",
		"more of tmp":        "  container: {tmp: 1G}\n",
		"another image":      "  container: {image: ghcr.io/evil/go}\n",
		"an image of a like": "  container: {image: ghcr.io/acme-evil/go}\n",
		"build":              "  container: {build: ./docker}\n",
		"git_author":         "  container: {git_author: host}\n",
		"another secret":     "  container: {secrets: [{name: mine, env: MINE}]}\n",
		"another cache":      "  container: {caches: [npm]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			w, list := loadShared(t, l, extending(rest))
			if w != nil {
				t.Fatalf("it is granted: %+v", w.Container)
			}
			for _, d := range list {
				if d.Severity == diag.Error && (d.Code != "base-widening" && d.Code != "base-closed" || len(d.Related) == 0 || d.Range.Start.Line == 0 || !strings.HasPrefix(d.Related[0].Range.Filename, baseFrom+"/") || d.Related[0].Range.Start.Line == 0) {
					t.Errorf("want both places: %+v", d)
				}
			}
		})
	}
}

// Each attack is one error, at a place of its file, and no workshop.
func TestSourcesRefused(t *testing.T) {
	const deep = "workshop:\n  name: x\n  imports: [{as: a, from: \"git+https://git.example.org/%d\"}]\n"
	long := library{}
	for i := range 40 {
		long[fmt.Sprintf("git+https://git.example.org/%d", i)] = fstest.MapFS{"workshop.yaml": fileOf(fmt.Sprintf(deep, i+1))}
	}
	five := maps.Clone(long)
	five["git+https://git.example.org/4"] = fstest.MapFS{"workshop.yaml": fileOf("workshop:\n  name: x\n  workers: [{name: w, tools: []}]\n")}
	wide := library{}
	list := ""
	for i := range 33 {
		from := fmt.Sprintf("git+https://git.example.org/%d", i)
		wide[from] = sastRepo("workshop:\n  name: x\n  workers: [scanner, helper]\n")
		list += fmt.Sprintf("    - {as: a%d, from: %q}\n", i, from)
	}
	sast := func(from, to string) library {
		l := both()
		if !strings.Contains(sastFile, from) {
			t.Fatal(from)
		}
		l[sastFrom] = sastRepo(strings.Replace(sastFile, from, to, 1))
		return l
	}
	inBase := func(from, to string) library {
		l := both()
		text := string(l[baseFrom]["workshop.yaml"].Data)
		if !strings.Contains(text, from) {
			t.Fatal(from)
		}
		l[baseFrom]["workshop.yaml"].Data = []byte(strings.Replace(text, from, to, 1))
		return l
	}
	project := func(from, to string) string {
		if !strings.Contains(imports, from) {
			t.Fatal(from)
		}
		return strings.Replace(imports, from, to, 1)
	}
	needs := "  needs:\n"
	for _, c := range []struct {
		name  string
		l     library
		file  string
		codes string
		says  string
	}{
		{"not locked", library{}, imports, "source-not-locked", "isn't locked"},
		{"no file", library{sastFrom: {}}, imports, "source", "has no workshop.yaml"},
		{"not YAML", library{sastFrom: {"workshop.yaml": fileOf("{")}}, imports, "not-yaml", ""},
		{"needs more hosts", sast("[api.sast.example]", "[api.sast.example, more.example]"), imports, "import-needs", "more.example"},
		{"needs another secret", sast("secrets: [sast_token]", "secrets: [sast_token, other]"), imports, "import-needs", "the secret other"},
		{"needs a mount", sast("{target: /workspace/src}", "{target: /other}"), imports, "import-needs", "a mount at /other"},
		{"needs to write", sast("{target: /workspace/src}", "{target: /workspace/src, mode: rw}"), imports, "import-needs", "rw"},
		{"needs mode open", sast("mode: restricted, allow: [api.sast.example]", "mode: open"), imports, "import-needs", "mode open"},
		{"needs memory", sast(needs, needs+"    resources: {memory: 64G}\n"), imports, "import-needs", "memory 64G"},
		{"the grant is more than the project", both(), project("      secrets: [sast_token]", "      secrets: [sast_token]\n      resources: {memory: 64G}"), "widening", "memory"},
		{"a grant of nothing", both(), project("    sast:\n", "    sats:\n"), "grant-unknown import-needs", "sats"},
		{"ports in a grant", both(), project("      secrets: [sast_token]", "      secrets: [sast_token]\n      ports: [\"8080:8080\"]"), "grant-ports", ""},
		{"a base", library{sastFrom: {"workshop.yaml": fileOf("workshop:\n  name: s\n  container: {image: x}\n  open: {workers: true}\n  workers: [w]\n")}}, imports, "import-key", "is a base"},
		{"what extends a base", library{sastFrom: {"workshop.yaml": fileOf("workshop:\n  name: s\n  extends: {from: \"" + baseFrom + "\"}\n")}}, imports, "import-key", "is a base"},
		{"image", sast(needs, "  container: {image: evil}\n"+needs), imports, "import-key", "container"},
		{"image in needs", sast(needs, needs+"    image: host\n"), imports, "import-key", "image"},
		{"build in a worker", sast("network: none,", "build: ., network: none,"), imports, "import-key", "build"},
		{"env in a worker", sast("network: none,", "env: {A: b}, network: none,"), imports, "import-key", "env"},
		{"approvals", sast(needs, "  approvals: {default: auto}\n"+needs), imports, "import-key", "approvals"},
		{"an MCP server", sast(needs, "  mcp: {hub: {command: hub}}\n"+needs), imports, "import-key", "mcp"},
		{"isolation", sast(needs, "  isolation: namespace\n"+needs), imports, "import-key", "isolation"},
		{"extends", sast(needs, "  extends: {from: \""+baseFrom+"\"}\n"+needs), imports, "import-key", "extends"},
		{"a secret of the host", sast("secrets: [sast_token]", "secrets: [{name: sast_token, env: AWS_SECRET}]"), imports, "bad-secret import-key", "env"},
		{"a secret file", sast("secrets: [sast_token]", "secrets: [{name: sast_token, file: ~/.ssh/id}]"), imports, "bad-secret import-key", "file"},
		{"a variable", sast("name: sast-workers", "name: sast-workers\n  description: ${HOME}"), imports, "source-variable", "HOME"},
		{"a variable in a mount", sast("{target: /workspace/src}", "\"${HOME}:/x\""), imports, "source-variable", "HOME"},
		{"a mount of elsewhere", sast("{target: /workspace/src}", "{source: /etc, target: /x}"), imports, "source-path", "/etc"},
		{"a mount of the home", sast("{target: /workspace/src}", "\"~/x:/x\""), imports, "source-path", "~/x"},
		{"a mount above", sast("{target: /workspace/src}", "\"../x:/x\""), imports, "outside-project", "../x"},
		{"a mount outside", sast("{target: /workspace/src}", "{source: ../x, target: /x, outside_project: true}"), imports, "import-key source-path", "outside_project"},
		{"sockets", sast("{target: /workspace/src}", "{source: ./src, target: /x, sockets: allow}"), imports, "import-key", "sockets"},
		{"resolvers", sast("mode: restricted,", "mode: restricted, dns: [198.51.100.1],"), imports, "import-key", "dns"},
		{"a worker of the importer's", sast("    - scanner\n", "    - scanner\n    - own--x\n"), imports, "bad-name", "two dashes"},
		{"a local name like an import's", both(), project("workers: [own]", "workers: [own, sast--scanner]"), "bad-name", "two dashes"},
		{"an alias with dashes", both(), strings.ReplaceAll(strings.ReplaceAll(imports, "as: sast,", "as: sa--st,"), "    sast:\n", "    sa--st:\n"), "bad-name", ""},
		{"a long name", library{sastFrom: sastRepo("workshop:\n  name: x\n  workers: [scanner, helper, {name: " + strings.Repeat("w", 60) + ", tools: []}]\n")}, imports, "bad-name", "63"},
		{"delegates out of the import", library{sastFrom: {"workshop.yaml": fileOf("workshop:\n  name: x\n  workers: [{name: a, tools: [], delegates-to: [own]}]\n")}}, imports, "delegate-unknown", "sast--own"},
		{"a cycle", library{sastFrom: sastRepo(sastFile + "  imports: [{as: again, from: \"" + sastFrom + "\"}]\n")}, imports, "source-chain", "cycle"},
		{"a chain", long, fmt.Sprintf(deep, 0) + "  container: {image: x}\n", "source-chain", "more than 4"},
		{"a chain of 5", five, fmt.Sprintf(deep, 0) + "  container: {image: x}\n", "source-chain", "more than 4"},
		{"33 sources", wide, "workshop:\n  name: x\n  container: {image: x}\n  imports:\n" + list, "too-large", "more than 32"},
		{"two commits", library{sastFrom: sastRepo(sastFile)}, project("  grant:", "    - {as: other, from: \""+sastFrom+"\", version: v9}\n  grant:"), "source-twice", "v9"},
		{"twice one name", both(), project("  grant:", "    - {as: sast, from: \""+sastFrom+"\"}\n  grant:"), "duplicate-import", ""},
		{"an address of a file", both(), project(sastFrom, "file:///x"), "bad-source", ""},
		{"an address of a base that is none", both(), "workshop:\n  name: app\n  extends: {from: \"file:///x\"}\n  container: {tmp: 1M}\n  workers: [nosuch]\n  grant: {sast: {}}\n", "bad-source", ""},
		{"a base without an address", both(), "workshop:\n  name: app\n  extends: {version: ^1}\n  container: {tmp: 1M}\n  workers: [nosuch]\n", "missing-key", "from"},
		{"an address of a remote helper", both(), project(sastFrom, "git+ext::sh -c x"), "bad-source", ""},
		{"an address like an option", both(), project(sastFrom, "--upload-pack=x"), "bad-source", ""},
		{"a signer that is none", both(), project("version: ^2", "version: ^2, signer: me"), "bad-source", ""},
		{"a base with a variable", inBase("LANG: C.UTF-8", "LANG: \"${AWS_SECRET}\""), extending(""), "source-variable", "AWS_SECRET"},
		{"a base that builds", inBase("image: worker:1", "build: ./docker"), extending(""), "base-key", "build"},
		{"a base with an archive", inBase("image: worker:1", "image: docker-archive:x.tar"), extending(""), "base-key", "x.tar"},
		{"a base with a mount outside", inBase("mounts: [", "mounts: [{source: ../x, target: /x, outside_project: true}, "), extending(""), "source-path", "../x"},
		{"a base with a mount of the home", inBase("mounts: [", "mounts: [\"~/.aws:/x\", "), extending(""), "source-path", "~/.aws"},
		{"own workers", both(), extending("  workers: [own]\n"), "base-closed", "workers"},
		{"own approvals", both(), extending("  approvals: {default: auto}\n"), "base-closed", "approvals"},
		{"own ports", both(), extending("  container: {ports: [\"8080:8080\"]}\n"), "base-closed", "ports"},
		{"a worker of the base's name", library{baseFrom: baseRepo("  open: {workers: true}\n")}, extending("  workers: [{name: tester, tools: [], instructions: Mine.}]\n"), "duplicate-worker", "tester"},
		{"a host that a worker of the base needs", inBase("{caches: [go], ", "{network: {allow: [sum.golang.org]}, caches: [go], "), extending("  container: {network: {allow: [proxy.golang.org]}}\n"), "delegate-widening widening", "sum.golang.org"},
		{"a missing file of a worker", library{sastFrom: {"workshop.yaml": fileOf(sastFile)}}, imports, "worker-not-found worker-not-found", ""},
		{"a worker's file outside", library{sastFrom: sastRepo(strings.Replace(sastFile, "- scanner", "- {name: scanner, file: ../../own.md}", 1))}, imports, "bad-path", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, list := loadShared(t, c.l, c.file)
			if w != nil {
				t.Fatal("it is loaded")
			}
			var codes []string
			for _, d := range list {
				if d.Severity == diag.Error {
					codes = append(codes, d.Code)
					if d.Range.Start.Line == 0 {
						t.Errorf("no place: %+v", d)
					}
				}
			}
			slices.Sort(codes)
			if got := strings.Join(slices.Compact(codes), " "); got != strings.Join(slices.Compact(strings.Fields(c.codes)), " ") || !strings.Contains(list.Error(), c.says) {
				t.Errorf("got %s\n%s", got, list.Error())
			}
		})
	}
}

// A grant to paste stands in the hint, and makes the workshop one that loads.
func TestNeedsToPaste(t *testing.T) {
	file := strings.Replace(imports, "      secrets: [sast_token]\n", "", 1)
	_, list := loadShared(t, both(), file)
	i := slices.IndexFunc(list, func(d diag.Diagnostic) bool { return d.Code == "import-needs" })
	if i < 0 || !strings.Contains(list[i].Hint, "    sast:\n      network: {mode: restricted, allow: [api.sast.example]}\n      secrets: [sast_token]\n      mounts: [\"./src:/workspace/src\"]") {
		t.Error(list.Error())
	}
}

// A file to be imported is valid by itself.
func TestNeeds(t *testing.T) {
	fsys := sastRepo(sastFile)
	w, list := Load(t.Context(), fsys, "workshop.yaml", Options{})
	if w == nil || !w.Needs || len(w.Workers) != 2 || hostsText(&w.Workers[0].Container) != "restricted api.sast.example" || hostsText(&w.Workers[1].Container) != "none " || len(list) > 0 {
		t.Fatal(list.Error())
	}
	fsys["workshop.yaml"] = fileOf(strings.Replace(sastFile, "  needs:", "  approvals: {default: auto}\n  needs:", 1))
	if w, list := Load(t.Context(), fsys, "workshop.yaml", Options{}); w != nil || !strings.Contains(list.Error(), "approvals") {
		t.Error(list.Error())
	}
}

// Two ways to one commit are one source.
func TestDiamond(t *testing.T) {
	common := "git+https://git.example.org/acme/common"
	l := both()
	l[common] = sastRepo("workshop:\n  name: common\n  workers: [scanner, helper]\n")
	l[sastFrom] = sastRepo(sastFile + "  imports: [{as: c, from: \"" + common + "\", version: ^1}]\n")
	w := mustLoad(t, l, strings.Replace(imports, "  grant:", "    - {as: c, from: \""+common+"\", version: ^1.1}\n  grant:", 1))
	if workerOf(t, w, "sast--c--scanner").From != "git.example.org/acme/common" || workerOf(t, w, "c--helper").From == "" {
		t.Error(w.Workers)
	}
	i := slices.IndexFunc(w.Sources, func(s UsedSource) bool { return s.ID == "git.example.org/acme/common" })
	if i != 0 || strings.Join(w.Sources[0].Via, " ") != "git.example.org/acme/sast workshop.yaml" {
		t.Error(w.Sources)
	}
}

// Each key of the schema has a row that says what becomes of it where files are shared.
func TestKeyRules(t *testing.T) {
	keys := SchemaKeys()
	for i, r := range keyRules {
		if i >= len(keys) || keys[i] != r.key {
			t.Fatalf("row %d is %s; want the keys in the order of the reference: %v", i, r.key, keys[i:min(i+1, len(keys))])
		}
	}
	for _, k := range keys[len(keyRules):] {
		t.Errorf("%s has no row: say in keyRules what a project may do with it, and whether an imported file may have it", k)
	}
}

// Without a way to open sources a workshop of several repositories isn't loaded.
func TestNoSources(t *testing.T) {
	w, list := Load(t.Context(), fstest.MapFS{"workshop.yaml": fileOf(imports), "workers/own.md": workerFile("own", "")}, "workshop.yaml", Options{})
	if w != nil || !strings.Contains(list.Error(), "aren't read here") {
		t.Error(list.Error())
	}
	failing := func(context.Context, SourceRef) (SourceFiles, error) {
		return SourceFiles{}, errors.Join(fs.ErrPermission)
	}
	if w, list := Load(t.Context(), fstest.MapFS{"workshop.yaml": fileOf(imports)}, "workshop.yaml", Options{OpenSource: failing}); w != nil || !strings.Contains(list.Error(), "permission") {
		t.Error(list.Error())
	}
}

// The hint about an address is the one that was meant.
func TestSourceHints(t *testing.T) {
	for _, c := range []struct{ from, want string }{
		{"https://git.example.org/acme/sast", `write "git+https://git.example.org/acme/sast"`},
		{"ssh://git@git.example.org/acme/sast", `write "git+ssh://git@git.example.org/acme/sast"`},
		{"git.example.org/acme/sast//go", `write "git+https://git.example.org/acme/sast//go"`},
		{"./sast", `write "git+https://HOST/PATH//DIRECTORY"`},
		{"acme/sast", `write "git+https://HOST/PATH//DIRECTORY"`},
		{"git@git.example.org:acme/sast", `write "git+https://HOST/PATH//DIRECTORY"`},
		{"/a.b/c", `write "git+https://HOST/PATH//DIRECTORY"`},
		{"", `write "git+https://HOST/PATH//DIRECTORY"`},
	} {
		if got := sourceHint(c.from); got != c.want {
			t.Errorf("%q: %s, want %s", c.from, got, c.want)
		}
	}
}
