package workshop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// sharedFiles are a project, its base and an import, by their workshop.yaml.
type sharedFiles struct{ project, base, imported string }

func (s sharedFiles) String() string {
	return "--- project\n" + s.project + "\n--- base\n" + s.base + "\n--- imported\n" + s.imported
}

func (s sharedFiles) library() library {
	dir := func(file string) fstest.MapFS {
		return fstest.MapFS{
			"workshop.yaml": fileOf(file), "workers/v.md": workerFile("v", ", mcp__hub"),
			"workers/own.md": workerFile("own", ""), "src/a/a/a/a": fileOf(""), "none/a": fileOf(""), "src/x": fileOf(""), "docs/a/a/a": fileOf(""),
		}
	}
	return library{baseFrom: dir(s.base), sastFrom: dir(s.imported), "": dir(s.project)}
}

// holds is the promise in its simplest form: imported workers are within the project's
// container, and a project with a base, and all its workers, within what that grants and
// opens (B47). It reports whether the files are a workshop.
func (s sharedFiles) holds(t *testing.T) bool {
	l := s.library()
	o := Options{OpenSource: l.open, Home: "/home/me", Root: "/home/me/app", Lookup: func(string) (string, bool) { return "secret", true }}
	w, list := Load(t.Context(), l[""], "workshop.yaml", o)
	for _, d := range list {
		if d.Range.Filename == "" || d.Summary == "" || d.Code == "" {
			t.Fatalf("%+v of\n%s", d, s)
		}
	}
	if w == nil || w.Needs {
		if w == nil && !list.HasErrors() {
			t.Fatalf("no workshop and no error of\n%s", s)
		}
		return false
	}
	p := &problems{}
	own := readFile(l[""], "workshop.yaml", o, p)
	if own.form.Extends != nil {
		s.inBase(t, w, l, o, own.form.Extends.From.V)
	}
	for i := range w.Workers {
		k := &w.Workers[i]
		if k.Import() == "" {
			continue
		}
		noMore(t, k.Name, &k.Container, w.Container, s)
		if len(k.Container.Ports) > 0 || strings.Contains(fmt.Sprint(k.Container.Env), "secret") && own.form.Grant[k.Import()].Env == nil {
			t.Fatalf("%s has %v and %v of\n%s", k.Name, k.Container.Ports, k.Container.Env, s)
		}
		for _, m := range k.Container.Mounts {
			if m.Source.V == "" || len(m.Within) == 0 {
				t.Fatalf("the mount of %s at %s is of %q, within %v, of\n%s", k.Name, m.Target.V, m.Source.V, m.Within, s)
			}
		}
	}
	return true
}

// inBase compares a project with its base, which is loaded by itself.
func (s sharedFiles) inBase(t *testing.T, w *Workshop, l library, o Options, from string) {
	p := &problems{}
	b, _ := Load(t.Context(), l[from], "workshop.yaml", o)
	if b == nil {
		return // one of its workers has more than it, which the project opens
	}
	file := readFile(l[from], "workshop.yaml", o, p)
	open := file.form.Open
	most := open.upTo(b.Container)
	for i, o := range most.Secrets { // the project says where they are from
		if at := slices.IndexFunc(w.Container.Secrets, func(s Secret) bool { return s.Name == o.Name }); at >= 0 {
			most.Secrets[i] = w.Container.Secrets[at]
		}
	}
	if image := w.Container.Image.V; b.Container.Image.V != "" && image != b.Container.Image.V && !open.image(image) {
		t.Fatalf("the image is %q of\n%s", image, s)
	}
	for i := range w.Workers {
		k := &w.Workers[i]
		if open.opens("container.ports") || slices.ContainsFunc(b.Workers, func(o Worker) bool { return o.Name == k.Name }) {
			most.Ports = k.Container.Ports
		}
		if c := NewComparer(t.Context(), false); len(c.Excess(&k.Container, &most)) > 0 {
			at := slices.IndexFunc(b.Workers, func(o Worker) bool { return o.Name == k.Name })
			if at >= 0 && len(c.Excess(&b.Workers[at].Container, &b.Container)) > 0 {
				continue // the base hides it from others alone
			}
		}
		noMore(t, k.Name, &k.Container, most, s)
		if k.From == "" && !open.opens("workshop.workers") {
			t.Fatalf("the project has a worker of its own, %s, of\n%s", k.Name, s)
		}
	}
	noMore(t, "the project", &w.Container, most, s)
}

func noMore(t *testing.T, who string, inner *Container, outer Container, s sharedFiles) {
	c := NewComparer(t.Context(), false)
	for _, x := range c.Excess(inner, &outer) {
		t.Fatalf("%s has %s %q %+v, granted %q %+v of\n%s", who, x.Key, x.Have, x.HaveOf, x.Granted, x.GrantedOf, s)
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
}

// parts are those of a container that are random.
type parts struct {
	mode, room, memory, tmp                       int
	allow, deny, mounts, secrets, caches, strange []string
}

var allParts = parts{
	mode: 3, memory: 3, tmp: 3,
	allow:   []string{"a.example", "b.a.example", "'*.a.example'", "'**.example'", "{host: c.example, port: 8443}", "{host: d.example, upload: 1M/h}", "{cidr: 198.51.100.0/24, port: 22}", "{cidr: 10.0.0.0/8, port: 22}", "{host: p.example, private: true}", "{preset: npm}"},
	deny:    []string{"a.example", "'*.a.example'", "c.example", "{cidr: 198.51.100.128/25}", "registry.npmjs.org"},
	mounts:  []string{"./src:/src", "./src:/src:rw", "'.:/all'", "'./none:/src/a'", "'./src/x:/src/a'", "./docs:/docs:rw", "'./src:/docs/a'", "{source: ./docs, target: /d, exclude: ['a/*']}", "{source: ./docs, target: /c, copy: true}", "{source: ./src, target: /g, mode: rw, git: rw}", "{source: ./src, target: /s, sockets: allow}"},
	secrets: []string{"one", "two"},
	caches:  []string{"go", "npm"},
}

// below are parts that mostly narrow these.
func (p parts) below(r *rand.Rand) parts {
	list := func(own, all []string) (out []string) {
		for _, x := range own {
			if n := 4; r.IntN(n) > 0 || strings.Contains(x, "upload") && r.IntN(n) > 0 {
				out = append(out, x)
			}
		}
		if x := all[r.IntN(len(all))]; r.IntN(30) == 0 && !slices.Contains(out, x) {
			out = append(out, x)
		}
		return out
	}
	level := func(most int) int {
		if r.IntN(40) == 0 {
			most++
		}
		return max(0, most-r.IntN(4)/3)
	}
	a := allParts
	out := parts{
		mode: min(3, level(p.mode)), room: max(0, r.IntN(10)-7), memory: level(p.memory), tmp: level(p.tmp), allow: list(p.allow, a.allow), deny: list(a.deny[r.IntN(5):], a.deny),
		mounts: list(p.mounts, a.mounts), secrets: list(p.secrets, a.secrets), caches: list(p.caches, a.caches),
	}
	for i, m := range out.mounts {
		if r.IntN(6) == 0 {
			out.mounts[i] = strings.NewReplacer("./src:", "./src/a:", ":rw", "", "'.:", "'./docs:").Replace(m)
		}
	}
	if r.IntN(40) == 0 {
		out.strange = []string{[]string{"image: y", "git_author: host", "env: {E: v}", "ports: ['8080:8080']", "build: ./d"}[r.IntN(5)]}
	}
	return out
}

// text is a container as a file has it. A worker names secrets; a file to be imported
// leaves out where mounts are from.
func (p parts) text(r *rand.Rand, worker, sourced bool, first ...string) string {
	out := slices.Concat(first, p.strange)
	add := func(text string) {
		if r.IntN(8) > 0 {
			out = append(out, text)
		}
	}
	list := func(of []string) string { return "[" + strings.Join(of, ", ") + "]" }
	room := []string{"", "room: own, ", "room: shared, "}[p.room]
	switch mode := []string{"none", "none", "restricted", "open"}[p.mode]; {
	case mode == "none":
		add("network: {" + room + "mode: none}")
	case r.IntN(8) == 0 && worker:
		add("network: {" + room + "allow: " + list(p.allow) + ", deny: " + list(p.deny) + "}")
	default:
		add("network: {" + room + "mode: " + mode + ", allow: " + list(p.allow) + ", deny: " + list(p.deny) + "}")
	}
	var mounts []string
	targets := map[string]bool{}
	for _, m := range p.mounts {
		_, target, _ := strings.Cut(m, ":/")
		if strings.HasPrefix(m, "{") {
			_, target, _ = strings.Cut(m, "target: /")
		}
		if target = "/" + strings.TrimRight(strings.Split(target, ",")[0], "}'"); strings.HasSuffix(target, ":rw") {
			target = strings.TrimSuffix(target, ":rw")
		}
		if targets[target] {
			continue
		}
		targets[target] = true
		if !sourced && (r.IntN(2) == 0 || strings.Contains(m, "git:") || strings.Contains(m, "sockets:")) {
			m = "{target: " + target + "}"
		}
		mounts = append(mounts, m)
	}
	add("mounts: " + list(mounts))
	var secrets []string
	for _, name := range p.secrets {
		if !worker {
			name = "{name: " + name + ", env: " + strings.ToUpper(name) + "}"
		}
		secrets = append(secrets, name)
	}
	add("secrets: " + list(secrets))
	add("caches: " + list(p.caches))
	add(fmt.Sprintf("resources: {memory: %dG}", 1+p.memory))
	add(fmt.Sprintf("tmp: %dM", 128<<p.tmp))
	return "{" + strings.Join(out, ", ") + "}"
}

// randomFiles are files of parts that mostly narrow each other.
func randomFiles(r *rand.Rand) sharedFiles {
	workers := func(p parts, sourced bool) string {
		if r.IntN(2) == 0 {
			return "[v]"
		}
		return "[{name: v, container: " + p.below(r).text(r, true, sourced) + "}]"
	}
	const head = "workshop:\n  name: x\n"
	imports := func(p parts) (grant parts, text string) {
		grant = p.below(r)
		return grant, "  imports: [{as: sast, from: \"" + sastFrom + "\"}]\n  grant: {sast: " + grant.text(r, true, true) + "}\n"
	}
	base := allParts.below(r)
	open := base
	s := sharedFiles{base: head + "  container: " + base.text(r, false, true, "image: x") + "\n  workers: " + workers(base, true) + "\n"}
	if r.IntN(5) > 0 {
		open.allow, open.memory = append(slices.Clone(base.allow), "a.example", "b.a.example"), 3
		s.base += "  open: {workers: true, network: {allow: [a.example, b.a.example]}, mounts: [./docs, './src:rw'], images: [y], resources: {memory: 4G}, mcp: " + fmt.Sprint(r.IntN(2) == 0) + "}\n"
	}
	grant, text := imports(base)
	switch r.IntN(3) {
	case 0: // the base imports
		s.base += text
		s.project = head + "  extends: {from: \"" + baseFrom + "\"}\n  container: " + open.below(r).text(r, false, true) + "\n"
	case 1:
		p := open.below(r)
		grant, text = imports(p)
		s.project = head + "  extends: {from: \"" + baseFrom + "\"}\n  container: " + p.text(r, false, true) + "\n" + text
	default:
		p := allParts.below(r)
		grant, text = imports(p)
		s.project = head + "  container: " + p.text(r, false, true, "image: x") + "\n" + text + "  workers: [own]\n"
	}
	if r.IntN(4) == 0 && strings.Contains(s.project, "extends") {
		s.project += "  workers: [{name: mine, tools: [], container: " + open.below(r).text(r, true, true) + "}]\n"
	}
	needs := grant.below(r)
	s.imported = head + "  needs: " + needs.text(r, true, false) + "\n  workers: " + workers(needs, false) + "\n"
	return s
}

// B47: whatever bases, imports and projects say, nobody has more than the project's file,
// and that no more than its base.
func TestSourcesHold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 47))
	loaded := 0
	for range 1500 {
		if randomFiles(r).holds(t) {
			loaded++
		}
	}
	if loaded < 60 {
		t.Errorf("only %d are workshops", loaded)
	}
}

func FuzzSources(f *testing.F) {
	f.Add(sharedProject, string(baseRepo("  open: {workers: true, network: {allow: [api.sast.example]}}\n")["workshop.yaml"].Data), sastFile)
	r := rand.New(rand.NewPCG(2, 47))
	for n := 0; n < 40; {
		if s := randomFiles(r); s.loads(f) {
			f.Add(s.project, s.base, s.imported)
			n++
		}
	}
	f.Fuzz(func(t *testing.T, project, base, imported string) {
		sharedFiles{project, base, imported}.holds(t)
	})
}

func (s sharedFiles) loads(t testing.TB) bool {
	l := s.library()
	w, _ := Load(t.Context(), l[""], "workshop.yaml", Options{OpenSource: l.open})
	return w != nil
}
