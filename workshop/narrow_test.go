package workshop

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
)

const plainWorker = "---\nallowed-tools: []\n---\nDo.\n"

// project is a file system with a workshop.yaml and the worker files named.
func project(yaml string, files map[string]string) fs.FS {
	out := fstest.MapFS{"workshop.yaml": {Data: []byte(yaml)}}
	for name, data := range files {
		out[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return out
}

// places is a report in short: where, what, and the second place.
func places(l diag.List) []string {
	var out []string
	for _, d := range l {
		s := fmt.Sprintf("%d: %s", d.Range.Start.Line, d.Summary)
		if d.Range.Filename != "workshop.yaml" {
			s = d.Range.Filename + ":" + s
		}
		for _, r := range d.Related {
			s += fmt.Sprintf(" [%d]", r.Range.Start.Line)
		}
		out = append(out, s)
	}
	return out
}

// outer is the workshop's container of the table; lines are counted from its
// first line, which is line 4 of the file.
const outer = `workshop:
  name: w
  container:
    image: worker:1
    network:
      mode: restricted
      allow:
        - api.github.com
        - "**.example.org:443"
        - {host: db.internal, port: 5432, private: true}
        - {cidr: 198.51.100.0/24, port: 8000-8010}
        - preset: go
      deny: [gist.github.com]
    mounts:
      - ./src:/src
      - {source: ./data, target: /data, exclude: [".env", "keys/*", "**/*.pem"]}
      - ./out:/out:rw
      - {source: ./repo, target: /repo, mode: rw}
    scratch: 256M
    resources: {memory: 1G, cpu: 2, pids: 100}
    env: {A: "1", B: "2"}
    secrets: [{name: token, env: TOKEN}]
    caches: [go, {name: models, target: /models, prune_above: 1G}]
  workers:
    - name: a
      container: %s
`

// B40: the table "Narrowing" of the spec. Line 26 is the worker's.
func TestNarrowing(t *testing.T) {
	for _, tt := range []struct {
		name, worker string
		want         []string
	}{
		{"nothing", `{}`, nil},

		{"mode: none", `{network: none}`, nil},
		{"mode: the same", `{network: restricted}`, nil},
		{"mode: more", `{network: open}`, []string{"26: network open is more than the workshop's restricted [6]"}},

		{"allow: nothing", `{network: {allow: []}}`, nil},
		{"allow: a line of the workshop", `{network: {allow: [api.github.com]}}`, nil},
		{"allow: one of its ports", `{network: {allow: ["api.github.com:80"]}}`, nil},
		{"allow: a name below a wildcard", `{network: {allow: ["a.b.example.org:443"]}}`, nil},
		{"allow: a narrower wildcard", `{network: {allow: ["*.b.example.org:443"]}}`, nil},
		{"allow: a smaller range, fewer ports", `{network: {allow: [{cidr: 198.51.100.128/25, port: 8005}]}}`, nil},
		{"allow: the same private host", `{network: {allow: [{host: db.internal, port: 5432, private: true}]}}`, nil},
		{"allow: private not needed", `{network: {allow: [{host: db.internal, port: 5432}]}}`, nil},
		{"allow: a preset of the workshop", `{network: {allow: [preset: go]}}`, nil},
		{"allow: a host of its preset", `{network: {allow: ["sum.golang.org:443"]}}`, nil},
		{"allow: another host", `{network: {allow: [example.com]}}`, []string{"26: example.com port 80,443 is not covered by a line of the workshop's allow [6]"}},
		{"allow: the apex of a wildcard", `{network: {allow: ["example.org:443"]}}`, []string{"26: example.org port 443 is not covered by a line of the workshop's allow [6]"}},
		{"allow: another port", `{network: {allow: ["api.github.com:22"]}}`, []string{"26: api.github.com port 22 is not covered by a line of the workshop's allow [8]"}},
		{"allow: one port too many", `{network: {allow: [a.example.org]}}`, []string{"26: a.example.org port 80,443 is not covered by a line of the workshop's allow [9]"}},
		{"allow: a wider range", `{network: {allow: [{cidr: 198.51.0.0/16, port: 8000}]}}`, []string{"26: 198.51.0.0/16 port 8000 is not covered by a line of the workshop's allow [6]"}},
		{"allow: private where the workshop isn't", `{network: {allow: [{host: api.github.com, port: 443, private: true}]}}`, []string{"26: api.github.com port 443 is not covered by a line of the workshop's allow [8]"}},
		{"allow: another preset", `{network: {allow: [preset: pypi]}}`, []string{
			"26: pypi.org port 443 (of the preset pypi) is not covered by a line of the workshop's allow [6]",
			"26: files.pythonhosted.org port 443 (of the preset pypi) is not covered by a line of the workshop's allow [6]",
		}},
		{"deny: anything", `{network: {deny: [api.github.com]}}`, nil},
		{"dns", `{network: {dns: [198.51.100.53]}}`, []string{"26: dns can't be set by a worker: one guard serves all workers of a workshop"}},
		{"proxy_credential", `{network: {proxy_credential: corp}}`, []string{"26: proxy_credential can't be set by a worker: one guard serves all workers of a workshop"}},
		{"proxy", `{network: {proxy: "http://198.51.100.1:3128"}}`, []string{"26: proxy can't be set by a worker: one guard serves all workers of a workshop"}},
		{"git_author", `{git_author: host}`, []string{"26: `git_author: host` isn't granted by the workshop"}},
		{"git_author: none", `{git_author: none}`, nil},
		{"kernel: more", `{kernel: vm}`, nil},
		{"runtime", `{runtime: runc}`, []string{"26: runtime can't be set by a worker: all containers of a workshop share one"}},

		{"mounts: none", `{mounts: []}`, nil},
		{"mounts: the same, elsewhere", `{mounts: ["./src:/elsewhere"]}`, nil},
		{"mounts: below", `{mounts: ["./src/a/../b:/src"]}`, nil},
		{"mounts: read-only instead", `{mounts: ["./out:/out:ro"]}`, nil},
		{"mounts: another source", `{mounts: ["./other:/src"]}`, []string{"26: the source ./other is not among the sources of the workshop's mounts, nor below one [15]"}},
		{"mounts: a source with the same beginning", `{mounts: ["./src2:/src"]}`, []string{"26: the source ./src2 is not among the sources of the workshop's mounts, nor below one [15]"}},
		{"mounts: above", `{mounts: ["./:/src"]}`, []string{"26: the source ./ is not among the sources of the workshop's mounts, nor below one [15]"}},
		{"mounts: writable", `{mounts: ["./src:/src:rw"]}`, []string{"26: ./src is mounted read-only in the workshop and read-write here [15]"}},
		{"mounts: a protected directory, B8", `{mounts: ["./repo/.git:/git:rw"]}`, []string{"26: .git is read-only below the workshop's mount: what is planted there runs on the host [18]"}},
		{"mounts: a protected directory read-only", `{mounts: ["./repo/.git:/git"]}`, nil},
		{"mounts: git", `{mounts: [{source: ./repo, target: /repo, mode: rw, git: rw}]}`, []string{"26: `git: rw` isn't granted by the workshop's mount [18]"}},
		{"mounts: sockets", `{mounts: [{source: ./repo, target: /repo, sockets: allow}]}`, []string{"26: `sockets: allow` isn't granted by the workshop's mount [18]"}},
		{"mounts: outside of the project", `{mounts: [{source: ../x, target: /x, outside_project: true}]}`, []string{"26: the source ../x is not among the sources of the workshop's mounts, nor below one [15]"}},
		{"mounts: absolute", `{mounts: [{source: /src, target: /x, outside_project: true}]}`, []string{"26: the source /src is not among the sources of the workshop's mounts, nor below one [15]"}},
		{"mounts: outside of the project, not granted", `{mounts: [{source: ./src, target: /src, outside_project: true}]}`, []string{"26: `outside_project: true` isn't granted by the workshop's mount [15]"}},
		{"copy: the directory itself", `{mounts: ["./data/sub:/data"]}`, []string{"26: the workshop's mount excludes **/*.pem, this one doesn't [16]"}},
		{"exclude: the same", `{mounts: [{source: ./data, target: /data, exclude: ["**/*.pem", ".env", "keys/*"]}]}`, nil},
		{"exclude: more", `{mounts: [{source: ./data, target: /data, exclude: ["**/*.pem", "**/.env", "keys/*", x]}]}`, nil},
		{"exclude: less", `{mounts: [{source: ./data, target: /data, exclude: ["**/*.pem"]}]}`, []string{"26: the workshop's mount excludes .env, keys/*, this one doesn't [16]"}},
		{"exclude: none", `{mounts: ["./data:/data"]}`, []string{"26: the workshop's mount excludes .env, keys/*, **/*.pem, this one doesn't [16]"}},
		{"exclude: what reaches below", `{mounts: [{source: ./data/sub, target: /data, exclude: ["**/*.pem"]}]}`, nil},
		{"exclude: below, less", `{mounts: [{source: ./data/sub, target: /data, copy: true}]}`, []string{"26: the workshop's mount excludes **/*.pem, this one doesn't [16]"}},
		{"exclude: an excluded directory", `{mounts: ["./data/keys/a:/keys"]}`, []string{"26: ./data/keys/a is excluded from the workshop's mount by keys/* [16]"}},

		{"limits: less", `{scratch: 1M, tmp: 1M, shm: 1M, home: 1M, resources: {memory: 128M, cpu: 0.5, pids: 16, timeout: 1s}}`, nil},
		{"limits: more", `{scratch: 1G, tmp: 8G, resources: {memory: 2G, cpu: 2.5, pids: 101, timeout: 1h}}`, []string{
			"26: scratch 1G is more than the workshop's 256M [19]",
			"26: tmp 8G is more than the workshop's default of 512M",
			"26: memory 2G is more than the workshop's 1G [20]",
			"26: cpu 2.5 is more than the workshop's 2 [20]",
			"26: pids 101 is more than the workshop's 100 [20]",
			"26: timeout 1h is more than the workshop's default of 10m",
		}},
		{"secrets: the workshop's", `{secrets: [token]}`, nil},
		{"caches: the workshop's", `{caches: [go, models]}`, nil},
		{"caches: another", `{caches: [npm]}`, []string{"26: the workshop has no cache npm [23]"}},
		{"caches: where it is", `{caches: [{name: models, target: /y}]}`, []string{"26: a worker only names caches; the workshop's container says where they are"}},
		{"caches: at a mount of its own", `{mounts: ["./src:/models/src"], caches: [models]}`, []string{"26: the cache models at /models and the mount at /models/src are one inside of the other [26]"}},
		{"secrets: another", `{secrets: [tokn]}`, []string{"26: the workshop has no secret tokn [22]"}},
		{"env: anything", `{env: {A: x, C: y}}`, nil},
		{"free: image, user, workdir", `{image: "other:2", user: "2000:2000", workdir: /x}`, nil},
		{"free: build", `{build: {context: ./docker}}`, nil},
		{"all at once", `{runtime: runc, network: open, mounts: ["./x:/x"], resources: {memory: 2G}}`, []string{
			"26: runtime can't be set by a worker: all containers of a workshop share one",
			"26: network open is more than the workshop's restricted [6]",
			"26: the source ./x is not among the sources of the workshop's mounts, nor below one [15]",
			"26: memory 2G is more than the workshop's 1G [20]",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := Load(t.Context(), project(fmt.Sprintf(outer, tt.worker), map[string]string{"workers/a.md": plainWorker}), "workshop.yaml", Options{})
			var got []string
			for i, s := range places(diags) {
				if diags[i].Severity == diag.Error {
					got = append(got, s)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, d := range diags {
				if d.Severity == diag.Error && d.Hint == "" {
					t.Errorf("no hint: %v", d)
				}
			}
		})
	}
}

// Under open, lines for public names and addresses are covered; private ones
// need a line of the workshop.
func TestNarrowingOpen(t *testing.T) {
	const open = "workshop:\n  name: w\n  container:\n    image: i:1\n    network: {mode: open, allow: [{host: db.internal, port: 5432, private: true}], deny: [gist.github.com]}\n  workers:\n    - name: a\n      container: %s\n"
	for name, tt := range map[string]struct {
		worker string
		want   []string
	}{
		"a public name":     {`{network: {mode: restricted, allow: [example.org, "x.example.org:22"]}}`, nil},
		"a public range":    {`{network: {mode: restricted, allow: [{cidr: 198.51.100.0/24, port: 22}]}}`, nil},
		"the private host":  {`{network: {mode: restricted, allow: [{host: db.internal, port: 5432, private: true}]}}`, nil},
		"a private host":    {`{network: {mode: restricted, allow: [{host: x.internal, port: 5432, private: true}]}}`, []string{"8: x.internal port 5432 is not covered by a line of the workshop's allow [5]"}},
		"a private range":   {`{network: {mode: restricted, allow: [{cidr: 10.0.0.0/8, port: 22}]}}`, []string{"8: 10.0.0.0/8 port 22 is not covered by a line of the workshop's allow [5]"}},
		"a range around it": {`{network: {mode: restricted, allow: [{cidr: 8.0.0.0/6, port: 22}]}}`, []string{"8: 8.0.0.0/6 port 22 is not covered by a line of the workshop's allow [5]"}},
	} {
		_, diags := Load(t.Context(), project(fmt.Sprintf(open, tt.worker), map[string]string{"workers/a.md": plainWorker}), "workshop.yaml", Options{})
		var got []string
		for i, s := range places(diags) {
			if diags[i].Severity == diag.Error {
				got = append(got, s)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// What the first table has no line for: a project as a whole, a copy, a room.
func TestNarrowingMore(t *testing.T) {
	const text = "workshop:\n  name: w\n  container:\n    image: i:1\n    network: {mode: restricted, room: own}\n    mounts: [\".:/w\", {source: ./vendor, target: /v, copy: true}, {source: ./keys, target: /k, exclude: [a/b]}]\n  workers:\n    - name: a\n      container: %s\n"
	for name, tt := range map[string]struct {
		worker string
		want   []string
	}{
		"below the project":       {`{mounts: ["./a/b:/x"]}`, nil},
		"above the project":       {`{mounts: [{source: ../x, target: /x, outside_project: true}]}`, []string{"9: the source ../x is not among the sources of the workshop's mounts, nor below one [6]"}},
		"an absolute path":        {`{mounts: [{source: /x, target: /x, outside_project: true}]}`, []string{"9: the source /x is not among the sources of the workshop's mounts, nor below one [6]"}},
		"a room that is shared":   {`{network: {room: shared}}`, []string{"9: the workshop gives every worker a room of its own, this one would share [5]"}},
		"another mount grants it": {`{mounts: ["./keys:/k", "./vendor:/v"]}`, nil},
	} {
		_, diags := Load(t.Context(), project(fmt.Sprintf(text, tt.worker), map[string]string{"workers/a.md": plainWorker}), "workshop.yaml", Options{})
		if diff := cmp.Diff(tt.want, places(diags)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestMountExcess(t *testing.T) {
	src := func(s string) Value[string] { return Value[string]{V: s} }
	for _, tt := range []struct {
		name         string
		inner, outer Mount
		granted      bool
	}{
		{"a copy of a copy", Mount{Source: src("./a"), Copy: true}, Mount{Source: src("./a"), Copy: true}, true},
		{"the directory of a copy", Mount{Source: src("./a")}, Mount{Source: src("./a"), Copy: true}, false},
		{"below what is excluded elsewhere", Mount{Source: src("./a/b")}, Mount{Source: src("./a"), Exclude: []string{"c/d"}}, false},
		{"the same, as a copy", Mount{Source: src("./a/b"), Copy: true}, Mount{Source: src("./a"), Exclude: []string{"c/d"}}, true},
		{"absolute under relative", Mount{Source: src("/a")}, Mount{Source: src(".")}, false},
		{"absolute under absolute", Mount{Source: src("/a/b")}, Mount{Source: src("/a/")}, true},
		{"relative under absolute", Mount{Source: src("a")}, Mount{Source: src("/")}, false},
		{"git, its hooks", Mount{Source: src("r/.git/hooks"), ReadWrite: true, GitWritable: true}, Mount{Source: src("r"), ReadWrite: true, GitWritable: true}, false},
		{"git", Mount{Source: src("r"), ReadWrite: true, GitWritable: true}, Mount{Source: src("r"), ReadWrite: true, GitWritable: true}, true},
	} {
		if _, why, ok := grantedBy(tt.inner, []Mount{tt.outer}, &effort{left: maxEffort}); ok != tt.granted {
			t.Errorf("%s: granted %t (%s)", tt.name, ok, why.summary)
		}
	}
}

// What a worker gets in the end, key by key.
func TestEffective(t *testing.T) {
	w, diags := Load(t.Context(), project(fmt.Sprintf(outer, `{network: {allow: [api.github.com], deny: [example.net]}, mounts: ["./src/a:/a"], secrets: [token], caches: [models], env: {B: x, C: y}, resources: {cpu: 1}, workdir: /a}`),
		map[string]string{"workers/a.md": plainWorker}), "workshop.yaml", Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c := w.Workers[0].Container
	var deny []string
	for _, r := range c.Network.Deny {
		deny = append(deny, r.Target())
	}
	got := fmt.Sprintln(len(c.Network.Allow), deny, c.Mounts[0].Target.V, c.Mounts[0].Within[0], len(c.Mounts), c.Secrets[0].Env,
		c.Caches[0].Target.V, c.Caches[0].PruneAbove.V, len(c.Caches), c.Env["A"].V, c.Env["B"].V, c.Env["C"].V, c.Resources.CPU.V, c.Resources.Memory.V, c.Workdir.V, c.Image.V)
	if want := "1 [gist.github.com example.net] /a ./src 1 TOKEN /models 1G 1 1 x y 1 1G /a worker:1\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b := w.Container; len(b.Network.Deny) != 1 || len(b.Mounts) != 4 || b.Env["B"].V != "2" {
		t.Error("the workshop's own container was changed")
	}
}

// Absent secrets and caches mean none, and the workshop says so.
func TestSecretsAreGivenByName(t *testing.T) {
	w, diags := Load(t.Context(), project(fmt.Sprintf(outer, `{}`), map[string]string{"workers/a.md": plainWorker}), "workshop.yaml", Options{})
	if c := w.Workers[0].Container; diags.HasErrors() || len(c.Secrets)+len(c.Caches) != 0 {
		t.Fatalf("%v, secrets %v, caches %v", diags, c.Secrets, c.Caches)
	}
	if got := strings.Join(places(diags), "\n"); !strings.Contains(got, "22: no worker uses the secret token") || !strings.Contains(got, "23: no worker uses the cache models") {
		t.Error(got)
	}
}

func TestResidues(t *testing.T) {
	for _, tt := range []struct {
		pattern, below string
		rest           []string
		whole          bool
	}{
		{"*.pem", "", []string{"*.pem"}, false},
		{"*.pem", "a", nil, false},
		{"a/*.pem", "a", []string{"*.pem"}, false},
		{"a/*.pem", "b", nil, false},
		{"*/x", "b", []string{"x"}, false},
		{"**/*.pem", "a/b", []string{"**/*.pem"}, false},
		{"**/b/x", "a/b", []string{"x", "**/b/x"}, false},
		{"a", "a", nil, true},
		{"a", "a/b", nil, true},
		{"**", "a", []string{"**"}, true},
		{"a/**", "a", []string{"**"}, false},
		{"a/a/x", "a/a", []string{"x"}, false},
		{"**/**/**/**/**/x", "a", []string{"**/x"}, false},
	} {
		rest, whole := residues(tt.pattern, tt.below)
		if diff := cmp.Diff(tt.rest, rest); diff != "" || whole != tt.whole {
			t.Errorf("residues(%q, %q) = %v, %t; want %v, %t", tt.pattern, tt.below, rest, whole, tt.rest, tt.whole)
		}
	}
}

// The longest line that a name fits decides, and resolvers over HTTPS have lines of
// their own: a wider line of the workshop doesn't grant what it doesn't open.
func TestNarrowingByTheDecidingLine(t *testing.T) {
	const text = "workshop:\n  name: w\n  container:\n    image: i:1\n    network: {mode: restricted, allow: [{host: \"**.example.org\", private: true}, a.example.org, {host: \"**.example.net\", ech: allow}, b.example.net, \"**.nextdns.io\"]}\n  workers:\n    - {name: a, container: {network: {allow: %s}}}\n"
	for name, tt := range map[string]struct {
		allow string
		want  []string
	}{
		"both lines":                  {`[{host: "**.example.org", private: true}, a.example.org]`, nil},
		"a name that is private":      {`[{host: c.example.org, private: true}]`, nil},
		"the wide line alone":         {`[{host: "**.example.org", private: true}]`, []string{"7: **.example.org port 80,443 opens more than the workshop's longer line for a.example.org [5]"}},
		"the longer line, private":    {`[{host: a.example.org, private: true}]`, []string{"7: a.example.org port 80,443 opens more than the workshop's longer line for a.example.org [5]"}},
		"the wide line alone, ech":    {`[{host: "**.example.net", ech: allow}]`, []string{"7: **.example.net port 80,443 opens more than the workshop's longer line for b.example.net [5]"}},
		"the wide line, not private":  {`["**.example.org"]`, nil},
		"a resolver below a wildcard": {`[dns.nextdns.io]`, []string{"7: dns.nextdns.io port 80,443 is not covered by a line of the workshop's allow [5]"}},
	} {
		_, diags := Load(t.Context(), project(fmt.Sprintf(text, tt.allow), map[string]string{"workers/a.md": plainWorker}), "workshop.yaml", Options{})
		var got []string
		for i, s := range places(diags) {
			if diags[i].Severity == diag.Error {
				got = append(got, s)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
