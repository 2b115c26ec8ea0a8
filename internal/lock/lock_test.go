package lock

import (
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const file = `workshop:
  name: locked
  container:
    image: registry.example/acme/worker:1.4
    network: {mode: restricted, allow: [api.example.org, "${API:-b.example.org}", {host: db.example.org, port: 5432, upload: 5M/h}, {preset: nodejs}], deny: [gist.example.org]}
    mounts: ["./src:/workspace/src", "${DATA:-./data}:/data:rw", {source: ./in, target: /in, exclude: [".env", "**/*.pem"]}]
    env: {LANG: C.UTF-8, TOKEN: "${TOKEN:-}"}
    secrets: [{name: t, env: T}, {name: ca, file: ./ca.pem}]
    caches: [npm, {name: own, target: /own, prune_above: 20G}]
  workers:
    - one
    - {name: two, tools: [shell, "Bash(git log:*)", mcp__db], instructions: x, container: {image: host, network: none, mounts: [], secrets: [t, ca], caches: [npm, own], git_author: none}, model: "large$$"}
    - {name: three, tools: [], instructions: x, container: {build: {context: ./docker, dockerfile: Work, target: dev}, network: {room: own}, ports: ["8080:8000"]}}
    - {name: four, tools: [], instructions: x, container: {image: "worker:${TAG:-1}", resources: {memory: "${MEM:-1G}"}}}
  mcp: {db: {command: "db server", args: [--ro], env: {A: b}}}
  approvals: {default: ask, rules: [{tool: shell, match: git status, approval: auto}]}
`

const one = "---\nname: one\ndescription: d\nallowed-tools: Read, Bash(git:*)\n---\nDo.\n"

func files(text string) map[string][]byte {
	return map[string][]byte{"workshop.yaml": []byte(text), "workers/one.md": []byte(one)}
}

// locked is the lock of a workshop whose image is known.
func locked(t *testing.T, text string, env map[string]string) *Lock {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, data := range files(text) {
		fsys[name] = &fstest.MapFile{Data: data}
	}
	w, list := workshop.Load(t.Context(), fsys, "workshop.yaml", workshop.Options{Home: "/home/user", Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if list.HasErrors() {
		t.Fatal(list)
	}
	l := New(w, files(text))
	for name := range l.Builds {
		l.Builds[name] = HashText([]byte("context"))
	}
	for _, name := range l.Unresolved() {
		l.Images[name] = Image{Digest: HashText([]byte(name)), Platforms: map[string]string{"linux/amd64": HashText([]byte("amd64"))}}
	}
	l.Describe(w)
	return l
}

// B46: the file is the same wherever it is written: values of variables, and the order in
// which workers stand, are not in it.
func TestGolden(t *testing.T) {
	text := locked(t, file, nil).Render()
	const golden = "testdata/workshop.lock"
	if *update {
		if err := os.WriteFile(golden, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(text)); d != "" {
		t.Error(d)
	}
	other := locked(t, file, map[string]string{"DATA": "./elsewhere", "TOKEN": "hunter2", "TAG": "9", "API": "c.example.org", "MEM": "2G"}).Render()
	if d := cmp.Diff(string(text), string(other)); d != "" {
		t.Errorf("with other variables: %s", d)
	}
}

func TestRoundTrip(t *testing.T) {
	l := locked(t, file, nil)
	got, list := Parse("workshop.lock", l.Render())
	if len(list) > 0 {
		t.Fatal(list)
	}
	if d := cmp.Diff(l, got); d != "" {
		t.Error(d)
	}
	if d := Compare(l, got); len(d) > 0 {
		t.Error(d)
	}
	crlf := strings.ReplaceAll(string(l.Render()), "\n", "\r\n")
	if again, list := Parse("workshop.lock", []byte(crlf)); len(list) > 0 || cmp.Diff(l, again) != "" {
		t.Errorf("with CRLF: %v", list)
	}
}

// A lock that isn't whole is an error with a line, and never an empty one.
func TestBad(t *testing.T) {
	good := string(locked(t, file, nil).Render())
	swap := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "workshop.lock:1:1: the lock is cut off: its last line isn't `...`"},
		{"cut", good[:len(good)/2], "the lock is cut off"},
		{"cut at a line", swap("\n...\n", "\n"), "the lock is cut off"},
		{"conflict", swap("images:\n", "<<<<<<< HEAD\nimages:\n"), "workshop.lock:6:1: the lock has conflict markers of a merge"},
		{"twice", swap("presets:\n", "files: {}\npresets:\n"), `the key "files" is given twice`},
		{"twice below", swap("images:\n", "  workshop.yaml: sha256:"+strings.Repeat("0", 64)+"\nimages:\n"), `workshop.lock:6:3: the key "workshop.yaml" is given twice`},
		{"twice as a whole", "version: 1\nfiles: {}\ncan: []\n...\nversion: 1\n...\n", "workshop.lock:5:1: the lock has a second document"},
		{"no version", swap("version: 1\n", ""), "the lock has no version"},
		{"newer", swap("version: 1\n", "version: 2\n"), "workshop.lock:2:10: the lock has version 2, this program knows 1"},
		{"no files", "version: 1\ncan: []\n...\n", "the lock has no files"},
		{"no can", "version: 1\nfiles: {}\n...\n", "the lock has no can"},
		{"unknown", swap("presets:\n", "more: 1\npresets:\n"), `unknown key "more"`},
		{"not a hash", swap("workshop.yaml: sha256:", "workshop.yaml: md5:"), "is not a hash"},
		{"list", "- a\n...\n", "the lock is not a mapping"},
		{"alias", swap("files:\n", "files: &f\n  x: *f\n"), "is not text"},
		{"not YAML", swap("files:\n", "files: [\n"), "the lock is not valid YAML"},
		{"deep", "version: 1\nfiles: " + strings.Repeat("[", 100) + "\n...\n", "the lock is not valid YAML"},
		{"bidi", swap("can:\n", "can:\n  - a\u202eb\n"), "turns or hides text"},
		{"control", swap("can:\n", "can:\n  - a\x1b[2Jb\n"), "is not allowed in YAML"},
		{"image without a digest", swap("images:\n", "images:\n  x: {linux/amd64: sha256:"+strings.Repeat("0", 64)+"}\n"), "the image has no digest"},
		{"can of mappings", swap("can:\n", "can:\n  - a: b\n"), "this line of can is not text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, list := Parse("workshop.lock", []byte(c.text))
			if l != nil || len(list) == 0 {
				t.Fatal("it is taken for a lock")
			}
			if text := textOf(list); !strings.Contains(text, c.want) {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// B46: a lock that is a symbolic link is not read: what it leads to is reviewed as no lock.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "elsewhere")
	if err := errors.Join(os.WriteFile(at, Empty().Render(), 0o600), os.Symlink(at, filepath.Join(dir, "workshop.lock"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"elsewhere": nil, "workshop.lock": ErrLink} {
		if _, err := Read(os.DirFS(dir), name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func textOf(list diag.List) string {
	var out []string
	for _, d := range list {
		out = append(out, d.Range.String()+": "+d.Summary)
	}
	return strings.Join(out, "\n")
}

// Each thing that a lock covers has a difference of its own.
func TestCompare(t *testing.T) {
	l := locked(t, file, nil)
	const hash = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for _, c := range []struct {
		name   string
		change func(*Lock)
		want   string
	}{
		{"nothing", func(*Lock) {}, ""},
		{"file", func(l *Lock) { l.Files["workshop.yaml"] = hash }, "file workshop.yaml is sha256:000000000000, locked as " + short(l.Files["workshop.yaml"])},
		{"a file more", func(l *Lock) { l.Files["workers/x.md"] = hash }, "file workers/x.md isn't in the lock"},
		{"a file less", func(l *Lock) { delete(l.Files, "workers/one.md") }, "file workers/one.md is in the lock and not used"},
		{"image", func(l *Lock) { l.Images["host"] = Image{Digest: hash} }, "image host is sha256:000000000000, locked as unpinned"},
		{"platform", func(l *Lock) { l.Images["registry.example/acme/worker:1.4"].Platforms["linux/amd64"] = hash }, "image registry.example/acme/worker:1.4 is another one for some platforms"},
		{"build", func(l *Lock) { l.Builds["./docker by Work target dev"] = hash }, "build ./docker by Work target dev is sha256:000000000000"},
		{"preset", func(l *Lock) { l.Presets["nodejs"] = hash }, "preset nodejs is sha256:000000000000"},
		{"a grant more", func(l *Lock) { l.Can = append(l.Can, "one tool shell") }, "+ one tool shell"},
		{"a grant less", func(l *Lock) { l.Can = slices.DeleteFunc(l.Can, func(s string) bool { return s == "two tool shell" }) }, "- two tool shell"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := locked(t, file, nil)
			c.change(now)
			var got []string
			for _, d := range Compare(l, now) {
				got = append(got, d.String())
			}
			if text := strings.Join(got, "\n"); len(got) > 1 || !strings.HasPrefix(text, c.want) || (text == "") != (c.want == "") {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// moved has the first line of can behind the second.
func moved(text string) string {
	head, rest, _ := strings.Cut(text, "can:\n")
	lines := strings.SplitAfterN(rest, "\n", 3)
	return head + "can:\n" + lines[1] + lines[0] + lines[2]
}

// Other bytes that mean the same are a difference, except for the ends of lines.
func TestCheckForm(t *testing.T) {
	l := locked(t, file, nil)
	text := string(l.Render())
	const form = "the lock isn't as `workshop lock` writes it"
	swap := func(old, with string) string { return strings.Replace(text, old, with, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"as written", text, ""},
		{"CRLF", strings.ReplaceAll(text, "\n", "\r\n"), ""},
		{"a comment", swap("can:\n", "can: # all\n"), form},
		{"quoted", swap("- one network restricted", `- "one network restricted"`), form},
		{"an empty part", swap("can:\n", "sources: {}\ncan:\n"), form},
		{"another order", moved(text), form},
		{"a preset", strings.Replace(text, l.Presets["nodejs"], HashText(nil), 1), "preset nodejs is"},
		{"a preset and a comment", strings.Replace(text, l.Presets["nodejs"], HashText(nil)+" # new", 1), "preset nodejs is \n" + form},
	} {
		t.Run(c.name, func(t *testing.T) {
			read, list := Parse("workshop.lock", []byte(c.text))
			if len(list) > 0 {
				t.Fatal(list)
			}
			var got []string
			for _, d := range Check([]byte(c.text), read, l) {
				line, _, _ := strings.Cut(d.String(), "sha256:")
				got = append(got, line)
			}
			if strings.TrimSpace(strings.Join(got, "\n")) != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPin(t *testing.T) {
	w, list := workshop.Load(t.Context(), fstest.MapFS{"workshop.yaml": {Data: []byte(`workshop:
  name: p
  container: {image: "registry.example/acme/worker:1.4"}
  workers:
    - {name: a, tools: [], instructions: x}
    - {name: b, tools: [], instructions: x, container: {image: "worker:${TAG:-1}"}}
    - {name: c, tools: [], instructions: x, container: {image: "debian@sha256:0000000000000000000000000000000000000000000000000000000000000000"}}
    - {name: d, tools: [], instructions: x, container: {image: host}}
    - {name: e, tools: [], instructions: x, container: {image: "oci:./i:1"}}
    - {name: f, tools: [], instructions: x, container: {image: "docker-archive:w.tar#sha256:0000000000000000000000000000000000000000000000000000000000000000"}}
    - {name: g, tools: [], instructions: x, container: {image: "oci:./i@sha256:0000000000000000000000000000000000000000000000000000000000000000"}}
`)}}, "workshop.yaml", workshop.Options{})
	if list.HasErrors() {
		t.Fatal(list)
	}
	l := New(w, nil)
	if d := cmp.Diff([]string{"registry.example/acme/worker:1.4"}, l.Unresolved()); d != "" {
		t.Error(d)
	}
	if got := l.Images[w.Workers[5].Container.Image.V].Digest; got != "sha256:"+strings.Repeat("0", 64) {
		t.Errorf("the hash in a reference: %s", got)
	}
	for name := range maps.Clone(l.Images) {
		l.Images[name] = Image{Digest: "sha256:" + strings.Repeat("1", 64)}
	}
	before := w.Workers[0].Container.Image.V
	pinned := l.Pin(w)
	var got []string
	for i := range pinned.Workers {
		got = append(got, pinned.Workers[i].Container.Image.V)
	}
	want := []string{before + "@sha256:" + strings.Repeat("1", 64), "worker:1", w.Workers[2].Container.Image.V, "host",
		"oci:./i:1#sha256:" + strings.Repeat("1", 64), w.Workers[5].Container.Image.V, w.Workers[6].Container.Image.V}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if w.Workers[0].Container.Image.V != before {
		t.Error("the workshop itself was changed")
	}
}

func TestFileOf(t *testing.T) {
	for file, want := range map[string]string{"workshop.yaml": "workshop.lock", "workshop.yml": "workshop.lock", "ci/other.yaml": "ci/other.lock", "plain": "plain.lock"} {
		if got := FileOf(file); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}

// FuzzParse: whatever the file is, it is refused or written again as the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(title + "\nversion: 1\nfiles:\n  a: sha256:" + strings.Repeat("0", 64) + "\nimages:\n  host: unpinned\ncan:\n  - \"a \\\" b\"\n...\n"))
	f.Add([]byte("version: 1\nfiles: {}\ncan: []\n...\n"))
	f.Add(withSources().Render())
	f.Fuzz(func(t *testing.T, data []byte) {
		l, list := Parse("workshop.lock", data)
		if (l == nil) != (len(list) > 0) {
			t.Fatalf("%v with %v", l, list)
		}
		if l == nil {
			return
		}
		again, list := Parse("workshop.lock", l.Render())
		if len(list) > 0 {
			t.Fatalf("written as\n%s\n%v", l.Render(), list)
		}
		if d := Compare(l, again); len(d) > 0 {
			t.Fatalf("written as\n%s\n%v", l.Render(), d)
		}
	})
}

// TestLinesTellApart: B46: what grants something else has another line, whatever words are
// in the values.
func TestLinesTellApart(t *testing.T) {
	const container = "workshop:\n  name: a\n  container: {KEYS}\n  workers: [{name: w, tools: [shell], instructions: x, container: {secrets: SECRETS}}]\n  mcp: {m: {command: c, args: [ARG]}}\n"
	can := func(keys, secrets, arg string) []string {
		t.Helper()
		if !strings.HasPrefix(keys, "build") {
			keys = "image: 'i:1', " + keys
		}
		text := strings.NewReplacer("KEYS", keys, "SECRETS", secrets, "ARG", arg).Replace(container)
		w, list := workshop.Load(t.Context(), fstest.MapFS{"workshop.yaml": {Data: []byte(text)}}, "workshop.yaml", workshop.Options{Symbols: true})
		if list.HasErrors() {
			t.Fatal(list)
		}
		l := New(w, nil)
		l.Describe(w)
		again, list := Parse("workshop.lock", l.Render())
		if len(list) > 0 || cmp.Diff(l.Can, again.Can) != "" {
			t.Errorf("written and read: %v, %v", list, again)
		}
		return l.Can
	}
	for name, pair := range map[string][2]string{
		"what stays out":                  {`mounts: [{source: ./d, target: /d, exclude: [.env, "*.pem"]}]`, `mounts: [{source: ./d, target: /d, exclude: [".env, *.pem"]}]`},
		"a place in a place":              {`mounts: ["./d at /x:/y"]`, `mounts: ["./d:/x at /y"]`},
		"a variable of the host":          {`env: {A: "$${T:?}"}`, `env: {A: "${T}"}`},
		"a directory named as a variable": {`mounts: [{source: "./$${T:?}", target: /d}]`, `mounts: [{source: "./${T}", target: /d}]`},
		"arguments of a build":            {`build: {context: ., args: {BASE: a}}`, `build: {context: ., args: {BASE: b}}`},
		"an image from elsewhere":         {`pull: missing`, `pull: always`},
		"a mode":                          {`mounts: ["./d:/d:ro"]`, `mounts: ["./d:/d:${MODE:-ro}"]`},
	} {
		if one, other := can(pair[0], "[]", "x"), can(pair[1], "[]", "x"); slices.Equal(one, other) {
			t.Errorf("%s: both are %s", name, strings.Join(one, "\n"))
		}
	}
	file, variable := can(`secrets: [{name: s, file: "$$T"}]`, "[s]", "x"), can(`secrets: [{name: s, env: T}]`, "[s]", "x")
	if slices.Equal(file, variable) {
		t.Errorf("a secret: both are %s", strings.Join(file, "\n"))
	}
	if one, other := can("", "[]", `"a\tb"`), can("", "[]", `'a\tb'`); slices.Equal(one, other) {
		t.Errorf("an argument: both are %s", strings.Join(one, "\n"))
	}
}
