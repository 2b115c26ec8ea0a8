package workshop

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// baseOf is a library with a base of these lines, and an import with these.
func baseOf(base, imported string) library {
	return library{
		baseFrom: {"workshop.yaml": fileOf("workshop:\n  name: b\n" + base), "workers/w.md": workerFile("w", "")},
		sastFrom: {
			"workshop.yaml": fileOf("workshop:\n  name: s\n" + imported), "workers/w.md": workerFile("w", ""),
			"workers/hub.md": workerFile("hub", ", mcp__hub"), "workers/llmdo.worker": fileOf("---\nname: llmdo\ntoolsets:\n  own: {}\n  nosuch: {}\n---\nWork.\n"),
		},
	}
}

// Lines of a base say which file they are in: its own, and not the project's.
func TestLinesOfABase(t *testing.T) {
	w := mustLoad(t, baseOf("  container: {image: x, network: {mode: restricted, allow: [a.example, b.example]}}\n  workers: [w]\n", ""),
		extending("  container: {network: {mode: restricted, allow: [b.example], deny: [a.b.example]}}\n"))
	n := workerOf(t, w, "w").Container.Network
	if len(n.Allow) != 1 || n.Allow[0].Line != "workshop.yaml:4" || len(n.Deny) != 1 || n.Deny[0].Line != "workshop.yaml:4" {
		t.Errorf("of the project: %+v %+v", n.Allow, n.Deny)
	}
	w = mustLoad(t, baseOf("  container: {image: x, network: {mode: restricted, allow: [a.example, b.example]}}\n  workers: [w]\n", ""), extending(""))
	if n := workerOf(t, w, "w").Container.Network; len(n.Allow) != 2 || n.Allow[0].Line != baseFrom+"/workshop.yaml:3" {
		t.Errorf("of the base: %+v", n.Allow)
	}
}

func importing(rest string) string {
	return "workshop:\n  name: app\n  imports: [{as: sast, from: \"" + sastFrom + "\"}]\n" + rest
}

// sharedAttack is a project that is refused: codes are those of its errors, and says is
// in their text.
type sharedAttack struct {
	name        string
	l           library
	file, codes string
	says        string
}

func (a *sharedAttack) refused(t *testing.T) {
	w, list := loadShared(t, a.l, a.file)
	if w != nil {
		t.Fatalf("it is loaded: %+v", w.Workers)
	}
	var codes []string
	for _, d := range list {
		if d.Severity != diag.Error {
			continue
		}
		codes = append(codes, d.Code)
		if d.Range.Start.Line == 0 || d.Range.Start.Column == 0 {
			t.Errorf("no place: %+v", d)
		}
		if d.Hint == "" && d.Code != "cache-over-mount" {
			t.Errorf("no hint: %+v", d)
		}
	}
	slices.Sort(codes)
	if got := strings.Join(slices.Compact(codes), " "); got != a.codes || !strings.Contains(list.Error(), a.says) {
		t.Errorf("got %s\n%s", got, list.Error())
	}
}

// B47: a base has alone what it doesn't open, wherever a project writes it; and what it
// says of the machine is no word of the project's.
func TestBaseKeeps(t *testing.T) {
	const (
		closed = "  container: {image: x}\n  workers: [w]\n"
		open   = "  container: {image: x}\n  open: {workers: true}\n  workers: [w]\n"
		images = "  container: {image: x}\n  open: {images: [node, 'acme/*', '*']}\n  workers: [w]\n"
	)
	imports := "  imports: [{as: sast, from: \"" + sastFrom + "\"}]\n"
	const far = "git+https://git.example.org/far"
	chain := func(near string) library {
		l := baseOf("  extends: {from: \""+far+"\"}\n"+near, "")
		l[far] = fstest.MapFS{"workshop.yaml": fileOf("workshop:\n  name: far\n  container: {image: x, network: {mode: restricted, allow: [a.example]}}\n  workers: [w]\n"), "workers/w.md": workerFile("w", "")}
		return l
	}
	for _, c := range []sharedAttack{
		{"image of a worker", baseOf(open, ""), extending("  workers: [{name: other, tools: [], instructions: x, container: {image: evil}}]\n"), "base-closed", "image is closed"},
		{"build of a worker", baseOf(open, ""), extending("  workers: [{name: other, tools: [], instructions: x, container: {build: ./d}}]\n"), "base-closed", "build is closed"},
		{"ports of a worker", baseOf(open, ""), extending("  workers: [{name: other, tools: [], instructions: x, container: {ports: ['8080:8080']}}]\n"), "base-closed", "ports is closed"},
		{"image of a grant", baseOf(open, "  workers: [w]\n"), extending(imports + "  grant: {sast: {image: evil}}\n"), "base-closed", "image is closed"},
		{"imports are workers", baseOf(closed, "  workers: [w]\n"), extending(imports), "base-closed", "imports is closed"},
		{"a host that the nearer of two bases opens", chain("  open: {network: {allow: [evil.example]}}\n"), extending("  container: {network: {allow: [a.example, evil.example]}}\n"), "base-widening", "evil.example"},
		{"a key that the nearer of two bases opens", chain("  open: {ports: true}\n"), extending("  container: {ports: ['8080:8080']}\n"), "base-closed", "ports is closed by the base git.example.org/far"},
		{"resolvers", baseOf("  container: {image: x, network: {mode: restricted, allow: [a.example], dns: [198.51.100.1]}}\n  workers: [w]\n", ""), extending("  container: {network: {dns: [198.51.100.2]}}\n"), "base-closed", "network.dns is set by the base"},
		{"a proxy's credential", baseOf("  container: {image: x, network: {mode: restricted, allow: [a.example], proxy: 'http://one.example:3128', proxy_credential: corp}}\n  workers: [w]\n", ""), extending("  container: {network: {proxy: 'http://two.example:3128', proxy_credential: own}}\n"), "base-closed", "network.proxy_credential is set by the base"},
		{"a credential for the proxy of the base", baseOf("  container: {image: x, network: {mode: restricted, allow: [a.example], proxy: 'http://one.example:3128'}}\n  workers: [w]\n", ""), extending("  container: {network: {proxy_credential: own}}\n"), "proxy-credential", "there is none"},
		{"a proxy", baseOf("  container: {image: x, network: {mode: restricted, allow: [a.example], proxy: 'http://one.example:3128'}}\n  workers: [w]\n", ""), extending("  container: {network: {proxy: 'http://two.example:3128'}}\n"), "base-closed", "network.proxy is set by the base"},
		{"a runtime", baseOf("  container: {image: x, runtime: runsc}\n  workers: [w]\n", ""), extending("  container: {runtime: runc}\n"), "base-closed", "runtime is set by the base"},
		{"an isolation", baseOf("  isolation: namespace\n"+closed, ""), extending("  isolation: docker\n"), "base-closed", "isolation is set by the base"},
		{"an MCP server of the base's name", baseOf("  container: {image: x}\n  open: {mcp: true}\n  mcp: {hub: {command: hub}}\n  workers: [w]\n", ""), extending("  mcp: {hub: {command: evil}}\n"), "base-closed", "MCP server hub"},
		{"room", baseOf("  container: {image: x, network: {mode: restricted, allow: [a.example], room: own}}\n  workers: [w]\n", ""), extending("  container: {network: {room: shared}}\n"), "base-widening", "room of its own"},
		{"a base that hides something", baseOf("  container: {image: x, mounts: ['./src:/src:rw', './none:/src/key']}\n  workers: [w]\n", ""), extending("  container: {mounts: ['./src:/src']}\n"), "base-widening", "src/key is covered"},
		{"an owner of Docker Hub", baseOf(images, ""), extending("  container: {image: node/evil}\n"), "base-closed", "image"},
		{"an image of a file", baseOf(images, ""), extending("  container: {image: 'docker-archive:x.tar'}\n"), "base-closed", "image"},
		{"the machine's programs", baseOf(images, ""), extending("  container: {image: host}\n"), "base-closed", "image"},
		{"another registry", baseOf(images, ""), extending("  container: {image: evil.example/acme/x}\n"), "base-closed", "image"},
		{"images of a base without one", baseOf("  open: {images: ['acme/*']}\n  container: {tmp: 10M}\n  workers: [w]\n", ""), extending("  container: {image: evil}\n"), "base-closed", "image"},
		{"a build against images", baseOf("  open: {images: ['acme/*']}\n  container: {tmp: 10M}\n  workers: [w]\n", ""), extending("  container: {build: ./d}\n"), "base-closed", "build"},
		{"no image", baseOf("  open: {workers: true}\n  container: {tmp: 10M}\n  workers: [w]\n", ""), extending(""), "missing-key", "has an image"},
		{"a mistake below open of the base", baseOf("  open: {workers: maybe}\n  container: {tmp: 10M}\n  workers: [w]\n", ""), extending("  container: {image: host}\n  workers: [{name: other, tools: [], instructions: x}]\n"), "wrong-type", "workers must be true or false"},
		{"a base with needs", baseOf("  needs: {mounts: [{target: /a, mode: rw}]}\n  workers: [w]\n", ""), extending(""), "base-key", "needs"},
		{"a base with needs and a container", baseOf("  container: {image: x, mounts: [{target: /a}]}\n  needs: {}\n  workers: [w]\n", ""), extending(""), "base-key", "needs"},
		{"a base with the machine's programs", baseOf("  container: {image: host}\n  workers: [w]\n", ""), extending(""), "base-key", "this machine"},
		{"a base that builds for its import", baseOf(closed+imports+"  grant: {sast: {build: ./d}}\n", "  workers: [w]\n"), extending(""), "base-key", "build"},
		{"a grant of a base for nothing", baseOf(closed+"  grant: {nosuch: {}}\n", ""), extending(""), "grant-unknown", "nosuch"},
		{"allow without a mode", baseOf(closed, ""), extending("  container: {network: {allow: [a.example]}}\n"), "allow-without-mode", "no effect"},
		{"a cache over a mount of the base", baseOf("  container: {image: x, caches: [go], mounts: ['./src:/src']}\n  workers: [{name: w, container: {caches: [go]}}]\n", ""), extending("  container: {caches: [{name: go, target: /src/x}]}\n"), "cache-over-mount", "/src/x"},
		{"a mount over a cache of the base", baseOf("  container: {image: x, caches: [{name: go, target: /gg}], mounts: ['./src:/src']}\n  workers: [{name: w, container: {caches: [go]}}]\n", ""), extending("  container: {mounts: ['./src:/gg/x']}\n"), "cache-over-mount", "/gg/x"},
		{"two caches in one place", baseOf("  container: {image: x, caches: [{name: go, target: /gg}, npm]}\n  workers: [{name: w, container: {caches: [go]}}]\n", ""), extending("  container: {caches: [go, {name: npm, target: /gg/x}]}\n"), "duplicate-cache", "/gg"},
		{"a worker of the base that shows what the project hides", baseOf("  container: {image: x, mounts: ['./src:/src:rw']}\n  workers: [{name: w, container: {mounts: ['./src:/src']}}]\n", ""),
			extending("  container: {mounts: ['./src:/src:rw', './src/none:/src/key']}\n"), "widening", "src/key is covered"},
		{"a worker of the project that shows what the base hides", baseOf("  container: {image: x, mounts: ['./src:/src:rw', './none:/src/key']}\n  open: {workers: true}\n  workers: [w]\n", ""),
			extending("  workers: [{name: other, tools: [], instructions: x, container: {mounts: ['./src:/src']}}]\n"), "widening", "src/key is covered"},
		{"a worker of the base above its own limits", baseOf("  container: {image: x, tmp: 128M}\n  workers: [{name: w, container: {tmp: 256M}}]\n", ""), extending("  container: {tmp: 64M}\n"), "widening", "tmp 256M"},
	} {
		t.Run(c.name, c.refused)
	}
}

// B47: a line is beyond the base, the nearest or another, that neither allows nor opens it.
func TestBeyondBase(t *testing.T) {
	const far = "git+https://git.example.org/far"
	l := baseOf("  extends: {from: \""+far+"\"}\n  container: {network: {allow: [a.example]}}\n  open: {network: {allow: [far.example, near.example]}}\n", "")
	l[far] = fstest.MapFS{"workshop.yaml": fileOf("workshop:\n  name: far\n  container: {image: x, network: {mode: restricted, allow: [a.example, '*.far.example'], deny: [denied.far.example]}}\n  open: {network: {allow: [far.example]}}\n  workers: [w]\n"), "workers/w.md": workerFile("w", "")}
	w := mustLoad(t, l, extending(""))
	const nearID, farID = "git.example.org/acme/workshops//go-review", "git.example.org/far"
	for _, c := range []struct{ host, want string }{
		{"a.example", ""}, {"far.example", ""}, {"near.example", farID}, {"x.far.example", nearID}, {"closed.example", farID}, {"denied.far.example", nearID},
	} {
		pattern, err := firewall.ParseHostPattern(c.host)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.BeyondBase(firewall.Rule{Host: pattern, Ports: []firewall.PortRange{{First: 443, Last: 443}}}); got != c.want {
			t.Errorf("%s: %q, want %q", c.host, got, c.want)
		}
	}
	if w := mustLoad(t, l, "workshop:\n  name: app\n  container: {image: x}\n  workers: [own]\n"); w.BeyondBase(firewall.Rule{}) != "" {
		t.Error("there is no base")
	}
}

// What a base grants, and what of it is the project's own word.
func TestBaseGives(t *testing.T) {
	t.Run("the name of commits", func(t *testing.T) {
		l := baseOf("  container: {image: x, git_author: host}\n  workers: [w]\n", "")
		if w := mustLoad(t, l, extending("")); w.Container.GitAuthor.V != "" || workerOf(t, w, "w").Container.GitAuthor.V != "" {
			t.Error("the base takes what this machine has")
		}
		if w := mustLoad(t, l, extending("  container: {git_author: host}\n")); workerOf(t, w, "w").Container.GitAuthor.V != GitAuthorHost {
			t.Error("the project may have what its base grants")
		}
	})
	t.Run("own workers narrow without a container of the project", func(t *testing.T) {
		l := baseOf("  container: {image: x, mounts: ['./src:/src'], network: {mode: restricted, allow: [a.example]}}\n  open: {workers: true}\n  workers: [w]\n", "")
		w := mustLoad(t, l, extending("  workers: [{name: other, tools: [], instructions: x, container: {network: none, mounts: []}}]\n"))
		if c := workerOf(t, w, "other").Container; hostsText(&c)+mountsText(&c) != "none " {
			t.Error("what the worker says is dropped:", hostsText(&c), mountsText(&c))
		}
	})
	t.Run("a mount by open is below it", func(t *testing.T) {
		l := baseOf("  container: {image: x, mounts: ['./src:/src']}\n  open: {mounts: [./docs]}\n  workers: [w]\n", "")
		w := mustLoad(t, l, extending("  container: {mounts: ['./docs/x:/d', './src/y:/s']}\n"))
		for i, want := range []string{"./docs", "./src"} {
			if got := strings.Join(workerOf(t, w, "w").Container.Mounts[i].Within, " "); got != want {
				t.Errorf("mount %d is within %q, want %q", i, got, want)
			}
		}
	})
	t.Run("a chain", func(t *testing.T) {
		far := "git+https://git.example.org/far"
		l := baseOf("  extends: {from: \""+far+"\"}\n  container: {mounts: ['./src/a:/a'], network: {deny: [b.example]}}\n", "")
		l[far] = fstest.MapFS{"workshop.yaml": fileOf("workshop:\n  name: far\n  container: {image: x, mounts: ['./src:/src'], network: {mode: restricted, allow: ['**.example'], deny: [a.example]}}\n  workers: [w]\n"), "workers/w.md": workerFile("w", "")}
		w := mustLoad(t, l, extending("  container: {mounts: ['./src/a/b:/b'], network: {deny: []}}\n"))
		c := workerOf(t, w, "w").Container
		if got := strings.Join(c.Mounts[0].Within, " "); got != "./src ./src/a" || len(c.Network.Deny) != 2 {
			t.Error(got, c.Network.Deny)
		}
		if w, list := loadShared(t, l, extending("  container: {mounts: ['./src:/b']}\n")); w != nil || !strings.Contains(list.Error(), "./src is not among") {
			t.Error("the nearer base counts, too:", list.Error())
		}
	})
	t.Run("a worker of the base has what the base hides from others", func(t *testing.T) {
		l := baseOf("  container: {image: x, mounts: ['./src:/src:rw', './none:/src/key']}\n  workers: [{name: w, container: {mounts: ['./src:/src']}}]\n", "")
		mustLoad(t, l, extending(""))
	})
	t.Run("rules of approvals before the project's", func(t *testing.T) {
		l := baseOf("  container: {image: x}\n  open: {approvals: true}\n  approvals: {default: ask, rules: [{tool: shell, approval: deny}]}\n  workers: [w]\n", "")
		w := mustLoad(t, l, extending("  approvals: {rules: [{tool: shell, approval: auto}]}\n"))
		if r := w.Approvals.Rules; len(r) != 2 || !strings.HasPrefix(r[0].At.Range.Filename, baseFrom+"/") {
			t.Errorf("%+v", r)
		}
	})
	for image, open := range map[string]string{"node:22": "node", "acme/x@sha256:" + strings.Repeat("0", 64): "acme/*", "docker.io/library/node": "node", "localhost:5000/x:1": "localhost:5000/x", "ghcr.io/a/b": "ghcr.io/*", "host": "host"} {
		t.Run(image, func(t *testing.T) {
			mustLoad(t, baseOf("  container: {image: x}\n  open: {images: ['"+open+"']}\n  workers: [w]\n", ""), extending("  container: {image: '"+image+"'}\n"))
		})
	}
}
