package workshop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/diag"
)

// B47: what the publisher of an import may try.
func TestImportsHeld(t *testing.T) {
	net := "network: {mode: restricted, allow: [a.example]}"
	for _, c := range []sharedAttack{
		{"a room of its own", baseOf("", "  needs: {network: {mode: restricted, allow: [a.example], room: shared}}\n  workers: [w]\n"),
			importing("  container: {image: x, network: {mode: restricted, allow: [a.example], room: own}}\n  grant: {sast: {network: {allow: [a.example]}}}\n  workers: [own]\n"), "import-needs", "room shared"},
		{"what a mount hides", baseOf("", "  needs: {mounts: ['./src:/src']}\n  workers: [w]\n"),
			importing("  container: {image: x, mounts: ['./src:/src:rw', './none:/src/key']}\n  grant: {sast: {mounts: ['./src:/src:rw', './none:/src/key']}}\n  workers: [own]\n"), "import-needs", "src/key"},
		{"what a mount hides, at another target", baseOf("", "  needs: {mounts: ['./src:/src', './src/key:/k']}\n  workers: [w]\n"),
			importing("  container: {image: x, mounts: ['./src:/src:rw', './none:/src/key']}\n  grant: {sast: {mounts: ['./src:/src:rw', './none:/src/key']}}\n  workers: [own]\n"), "import-needs", "src/key"},
		{"what a mount hides, by a worker", baseOf("", "  needs: {mounts: [{target: /src, mode: rw}, {target: /src/key}]}\n  workers: [{name: w, container: {mounts: ['./src:/src']}}]\n"),
			importing("  container: {image: x, mounts: ['./src:/src:rw', './none:/src/key']}\n  grant: {sast: {mounts: ['./src:/src:rw', './none:/src/key']}}\n  workers: [own]\n"), "widening", "src/key is covered"},
		{"a grant that shows what the project hides", baseOf("", "  workers: [w]\n"),
			importing("  container: {image: x, mounts: ['./src:/src:rw', './none:/src/key']}\n  grant: {sast: {mounts: ['./src:/src']}}\n  workers: [own]\n"), "widening", "src/key is covered"},
		{"a host without a grant", baseOf("", "  needs: {"+net+"}\n  workers: [w]\n"), importing("  container: {image: x, " + net + "}\n  workers: [own]\n"), "import-needs", "mode restricted"},
		{"a mount without a grant", baseOf("", "  needs: {mounts: ['./src:/src']}\n  workers: [w]\n"), importing("  container: {image: x, mounts: ['./src:/src']}\n  workers: [own]\n"), "import-needs", "the mount ./src"},
		{"a mount with a grant of hosts", baseOf("", "  needs: {"+net+", mounts: ['./src:/src']}\n  workers: [w]\n"),
			importing("  container: {image: x, " + net + ", mounts: ['./src:/src']}\n  grant: {sast: {" + net + "}}\n  workers: [own]\n"), "import-needs", "the mount ./src"},
		{"a secret without a grant", baseOf("", "  needs: {secrets: [t]}\n  workers: [w]\n"), importing("  container: {image: x, secrets: [{name: t, env: T}]}\n  workers: [own]\n"), "import-needs", "the secret t"},
		{"a cache over a mount", baseOf("", "  needs: {caches: [go], mounts: ['./src:/caches/go/x']}\n  workers: [w]\n"),
			importing("  container: {image: x, caches: [go], mounts: ['./src:/src']}\n  grant: {sast: {caches: [go], mounts: ['./src:/src']}}\n  workers: [own]\n"), "cache-over-mount", "/caches/go"},
		{"allow without a mode", baseOf("", "  needs: {network: {allow: [a.example]}}\n  workers: [w]\n"), importing("  container: {image: x}\n  workers: [own]\n"), "allow-without-mode", "no effect"},
		{"a grant's allow without a mode", baseOf("", "  workers: [w]\n"), importing("  container: {image: x}\n  grant: {sast: {network: {allow: [a.example]}}}\n  workers: [own]\n"), "allow-without-mode", "no effect"},
		{"a name of a room", baseOf("", "  workers: [w]\n"), strings.Replace(importing("  container: {image: x}\n  workers: [own]\n"), "as: sast", "as: room-a", 1), "reserved-name", "room-a"},
		{"ports for imported workers", baseOf("", "  workers: [w]\n"), importing("  container: {image: x, " + net + ", ports: ['8080:8080']}\n"), "ports-ambiguous", "imported"},
		{"a grant of an import for nothing", baseOf("", "  grant: {nosuch: {}}\n  workers: [w]\n"), importing("  container: {image: x}\n  workers: [own]\n"), "grant-unknown", "nosuch"},
		{"a mount over what isn't there", baseOf("", "  needs: {mounts: [{target: /src}, './src/a:/src/nosuch']}\n  workers: [w]\n"),
			importing("  container: {image: x, mounts: ['./src:/src']}\n  grant: {sast: {mounts: ['./src:/src']}}\n  workers: [own]\n"), "mount-point-missing", "has no nosuch"},
		{"a long address", library{}, strings.Replace(importing("  container: {image: x}\n"), sastFrom, sastFrom+strings.Repeat("x", 600), 1), "bad-source", "address"},
	} {
		t.Run(c.name, c.refused)
	}
}

// What imported workers have of the project, and what not.
func TestImportsApart(t *testing.T) {
	allow := "network: {mode: restricted, allow: [a.example]}"
	needs := "  needs: {" + allow + "}\n"
	t.Run("a room without the project's workers", func(t *testing.T) {
		w := mustLoad(t, baseOf("", needs+"  workers: [w, {name: v, tools: []}]\n"), importing("  container: {image: x, "+allow+"}\n  grant: {sast: {"+allow+"}}\n  workers: [own, {name: other, tools: []}]\n"))
		var got []string
		for _, r := range Rooms(w) {
			got = append(got, r.Name+" "+strings.Join(r.Workers, ","))
		}
		if strings.Join(got, " ") != "room-own own,other room-sast--w sast--w,sast--v" {
			t.Error(got)
		}
	})
	t.Run("no MCP server", func(t *testing.T) {
		w, list := loadShared(t, baseOf("", "  workers: [hub]\n"), importing("  container: {image: x}\n  mcp: {hub: {command: hub, env: {TOKEN: x}}}\n  workers: [own]\n"))
		if k := workerOf(t, w, "sast--hub"); len(k.Definition.Tools) != 1 || !strings.Contains(list.Error(), "mcp__hub isn't offered") {
			t.Error(k.Definition.Tools, list.Error())
		}
	})
	t.Run("no worker of the project as a toolset", func(t *testing.T) {
		w, list := loadShared(t, baseOf("", "  workers: [llmdo]\n"), importing("  container: {image: x}\n  workers: [own]\n"))
		if k := workerOf(t, w, "sast--llmdo"); len(k.Definition.DelegatesTo) > 0 || !strings.Contains(list.Error(), `"own" is neither`) {
			t.Error(k.Definition.DelegatesTo, list.Error())
		}
	})
	t.Run("limits of the project", func(t *testing.T) {
		w := mustLoad(t, baseOf("", "  workers: [{name: w, container: {resources: {memory: 512M}}}]\n"), importing("  container: {image: x, resources: {memory: 256M}}\n  workers: [own]\n"))
		if got := workerOf(t, w, "sast--w").Container.Resources.Memory.V.String(); got != "256M" {
			t.Error(got)
		}
	})
	t.Run("what lies over a granted mount", func(t *testing.T) {
		mounts := "mounts: ['.:/src:rw', './own:/src/workers:rw', {source: ./sock, target: /src/workshop.yaml, sockets: allow}]"
		w := mustLoad(t, baseOf("", "  needs: {mounts: [{target: /src}]}\n  workers: [{name: w, container: {mounts: [{target: /src}]}}]\n"), importing("  container: {image: x, "+mounts+"}\n  grant: {sast: {"+mounts+"}}\n  workers: [own]\n"))
		if got := mountsText(&workerOf(t, w, "sast--w").Container); got != ".:/src ./own:/src/workers {source: ./sock, target: /src/workshop.yaml, sockets: allow}" {
			t.Error(got)
		}
	})
	t.Run("through two imports", func(t *testing.T) {
		common := "git+https://git.example.org/acme/common"
		l := baseOf("", "  needs: {mounts: [{target: /src}], secrets: [a, b], "+allow+"}\n  imports: [{as: c, from: \""+common+"\"}]\n  grant: {c: {mounts: [{target: /src}], secrets: [a], network: {deny: [b.example]}}}\n  workers: [{name: own, tools: [], delegates-to: [c--w]}]\n")
		l[common] = fstest.MapFS{"workshop.yaml": fileOf("workshop:\n  name: c\n  needs: {mounts: [{target: /src}], secrets: [a], " + allow + "}\n  workers: [{name: w, tools: [], container: {mounts: [{source: ./src/x, target: /x, exclude: ['*.key']}]}}]\n")}
		w := mustLoad(t, l, importing("  container: {image: x, env: {E: f}, mounts: [{source: ./src, target: /src, exclude: ['*.key']}], secrets: [{name: a, env: A}, {name: b, env: B}], network: {mode: restricted, allow: [a.example], deny: [c.example]}}\n  grant: {sast: {mounts: [{source: ./src, target: /src, exclude: ['*.key']}], secrets: [a, b], "+allow+", env: {G: h}}}\n  workers: [own]\n"))
		c := workerOf(t, w, "sast--c--w").Container
		if len(c.Secrets) != 1 || len(c.Env) != 0 || len(c.Network.Deny) != 2 || strings.Join(c.Mounts[0].Within, " ") != "./src" {
			t.Errorf("%+v", c)
		}
		if k := workerOf(t, w, "sast--own"); len(k.Definition.DelegatesTo) != 1 || k.Definition.DelegatesTo[0].Name != "sast--c--w" || len(k.Container.Env) != 1 {
			t.Error(k.Definition.DelegatesTo, k.Container.Env)
		}
	})
	t.Run("needs of an import of an import", func(t *testing.T) {
		common := "git+https://git.example.org/acme/common"
		l := baseOf("", "  imports: [{as: c, from: \""+common+"\"}]\n  workers: [w]\n")
		l[common] = fstest.MapFS{"workshop.yaml": fileOf("workshop:\n  name: c\n  needs: {secrets: [a]}\n  workers: [{name: w, tools: []}]\n")}
		_, list := loadShared(t, l, importing("  container: {image: x, secrets: [{name: a, env: A}]}\n  grant: {sast: {secrets: [a]}}\n  workers: [own]\n"))
		if len(list) == 0 || list[0].Code != "import-needs" || !strings.Contains(list[0].Hint, "git.example.org/acme/sast") {
			t.Error(list)
		}
	})
	t.Run("a rule of approvals and a delegation name them", func(t *testing.T) {
		w := mustLoad(t, baseOf("", "  workers: [w]\n"), importing("  container: {image: x}\n  approvals: {rules: [{tool: delegate_sast--w, approval: deny}]}\n  workers: [{name: other, tools: [Read], delegates-to: [sast--w]}]\n"))
		if workerOf(t, w, "other").Definition.DelegatesTo[0].Name != "sast--w" {
			t.Error(w.Workers)
		}
	})
}

// A file with needs is checked by itself as it is where it is imported.
func TestNeedsAlone(t *testing.T) {
	for name, rest := range map[string]string{
		"a variable":       "  description: ${HOME}\n",
		"a path":           "  needs: {mounts: ['/etc:/x']}\n",
		"a home":           "  needs: {mounts: ['~/x:/x']}\n",
		"a build":          "  needs: {build: ./d}\n",
		"no mode":          "  needs: {network: {allow: [a.example]}}\n",
		"a target twice":   "  needs: {mounts: [{target: /a}, {target: /a}]}\n",
		"an MCP server":    "  needs: {}\n  mcp: {hub: {command: hub}}\n",
		"an image of work": "  workers: [{name: w, tools: [], container: {image: evil}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := "workshop:\n  name: x\n" + rest
			if !strings.Contains(file, "needs:") {
				file += "  needs: {}\n"
			}
			if !strings.Contains(file, "workers:") {
				file += "  workers: [{name: w, tools: []}]\n"
			}
			alone, list := Load(t.Context(), fstest.MapFS{"workshop.yaml": fileOf(file)}, "workshop.yaml", Options{})
			if alone != nil {
				t.Error("it is valid alone")
			}
			w, imported := loadShared(t, library{sastFrom: {"workshop.yaml": fileOf(file)}}, importing("  container: {image: x, network: open, mounts: ['.:/all']}\n  workers: [own]\n"))
			if w != nil || len(list) == 0 || !slices.ContainsFunc(imported, func(d diag.Diagnostic) bool { return d.Code == list[0].Code }) {
				t.Errorf("alone: %s\nimported: %s", list.Error(), imported.Error())
			}
		})
	}
	// Mounts in one another that who imports the file has.
	w, list := Load(t.Context(), fstest.MapFS{"workshop.yaml": fileOf("workshop:\n  name: x\n  needs: {mounts: [{target: /a}, {target: /a/b}]}\n  workers: [{name: w, tools: [], container: {mounts: [{target: /a/b}]}}]\n")}, "workshop.yaml", Options{})
	if w == nil {
		t.Error(list.Error())
	}
}

// B60: the work of sources is bounded, however often they name each other.
func TestSourcesBounded(t *testing.T) {
	from := func(i int) string { return fmt.Sprintf("git+https://git.example.org/%d", i) }
	worker := "  workers: [{name: w, tools: []}]\n"
	many := func(n int, of func(i int) string) string {
		var b strings.Builder
		b.WriteString("  imports:\n")
		for i := range n {
			fmt.Fprintf(&b, "    - {as: a%d, from: %q}\n", i, of(i))
		}
		return b.String()
	}
	const head = "workshop:\n  name: x\n"
	tree, wide, big, twice := library{}, library{}, library{}, library{}
	for i := range 4 {
		text := head + worker
		if i < 3 {
			text += many(20, func(int) string { return from(i + 1) })
		}
		tree[from(i)] = fstest.MapFS{"workshop.yaml": fileOf(text)}
	}
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "    - {name: w%d, tools: []}\n", i)
	}
	for i := range 32 {
		wide[from(i)] = fstest.MapFS{"workshop.yaml": fileOf(head + "  workers:\n" + b.String())}
		big[from(i)] = fstest.MapFS{"workshop.yaml": fileOf(head + worker + strings.Repeat("# "+strings.Repeat("x", 98)+"\n", 8000))}
		twice[from(i)] = fstest.MapFS{"workshop.yaml": fileOf(head + "  workers: [w]\n"), "workers/w.md": fileOf("---\nname: w\ntools: Read\n---\n" + strings.Repeat("word ", 50_000))}
	}
	container := "  container: {image: x}\n"
	for _, c := range []sharedAttack{
		{"a tree", tree, head + container + many(20, func(int) string { return from(0) }), "too-large", "128 times"},
		{"one, often", tree, head + container + many(1000, func(int) string { return from(3) }), "too-large", "128 times"},
		{"32 of 1,000 workers", wide, head + container + many(32, from), "too-large", "32000 workers"},
		{"32 of a megabyte", big, head + container + many(32, from), "too-large", "together"},
		{"long files of workers", twice, head + container + many(120, func(i int) string { return from(i % 32) }), "too-large", "files of the workers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, list := loadShared(t, c.l, c.file)
			if w != nil || list[0].Code != c.codes || !strings.Contains(list.Error(), c.says) || len(list) > 32 {
				t.Errorf("%d problems: %s", len(list), list[0].Error())
			}
		})
	}
}
