package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// load loads one file of testdata/valid.
func load(t *testing.T, name string) *Workshop {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "valid", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fsys := singleFile(data)
	w, l := Load(t.Context(), fsys, "workshop.yaml", testOptions())
	if w == nil {
		t.Fatal(text(t, fsys, l))
	}
	return w
}

// The defaults are those that the spec's full example shows.
func TestDefaults(t *testing.T) {
	w := load(t, "bom")
	c := w.Workers[0].Container
	if w.Isolation.V != IsolationAuto || w.Approvals.Default.V != ApprovalAsk {
		t.Errorf("isolation %q, approvals %q", w.Isolation.V, w.Approvals.Default.V)
	}
	got := []any{c.Pull.V, c.User.V, c.Workdir.V, c.Network.Mode.V, c.Network.OwnRoom.V, c.Scratch.V, c.Tmp.V, c.Shm.V, c.Home.V, c.Resources.Memory.V, c.Resources.CPU.V, c.Resources.PIDs.V, c.Resources.Timeout.V}
	want := []any{PullMissing, "", "/workspace", firewall.None, false, Size(256 << 20), Size(512 << 20), Size(64 << 20), Size(256 << 20), Size(2 << 30), 1.0, int64(256), 10 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if c.Tmp.Source.Range.Filename != "" {
		t.Error("a default has a place")
	}
}

// Each component of a scalar has its value, and a template in which no value
// of a variable stands (B45).
func TestTemplates(t *testing.T) {
	w := load(t, "variables")
	c := w.Container
	type pair struct{ V, Template string }
	of := func(v Value[string]) pair { return pair{v.V, v.Source.Template} }
	tests := []struct {
		name      string
		got, want pair
	}{
		{"source of a short mount", of(c.Mounts[0].Source), pair{"./src", "${SRC:-./src}"}},
		{"target of a short mount", of(c.Mounts[0].Target), pair{"/workspace", ""}},
		{"a dollar sign", of(c.Mounts[1].Source), pair{"./a$b", ""}},
		{"a variable", of(c.Env["A"]), pair{"set", "${SET:?}"}},
		{"an escaped variable", of(c.Env["B"]), pair{"${NOT_A_VARIABLE}", ""}},
		{"text around", of(c.Env["C"]), pair{"xsetz", "x${SET:-y}z"}},
		{"without braces", of(c.Env["D"]), pair{"set", "${SET:?}"}},
		{"empty default", of(c.Env["E"]), pair{"", "${NOT_SET:-}"}},
		{"user", of(c.User), pair{"1001", "${SET_UID:-1000}"}},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s = %q, want %q", tt.name, tt.got, tt.want)
		}
	}
	if c.Resources.Memory.V != 1<<30 || c.Resources.Memory.Source.Template != "${MEM:-1G}" {
		t.Errorf("memory = %+v", c.Resources.Memory)
	}
	if got := of(load(t, "image-variable").Container.Image); got != (pair{"ghcr.io/acme/worker:1.4", "${REGISTRY:-ghcr.io/acme}/worker:${TAG:-1.4}"}) {
		t.Errorf("image = %q", got)
	}
	home := load(t, "mounts").Container.Mounts[6].Source
	if got := of(home); got != (pair{"/home/me/data", "${HOME:?}/data"}) {
		t.Errorf("a source in the home directory = %q", got)
	}
	if got := load(t, "secrets").Container.Secrets[2].File; of(got) != (pair{"/home/me/keys/k", "${HOME:?}/keys/${KEY:-k}"}) {
		t.Errorf("a secret's file = %q", got)
	}
}

// A variable that is needed in one place is needed.
func TestVariables(t *testing.T) {
	w := load(t, "variables")
	got := map[string]Variable{}
	for _, v := range w.Variables {
		got[v.Name] = v
	}
	if v := got["SET"]; v.HasDefault {
		t.Errorf("SET = %+v, but one use has no default", v)
	}
	if v := got["MEM"]; v != (Variable{"MEM", "1G", true}) {
		t.Errorf("MEM = %+v", v)
	}
	for i := 1; i < len(w.Variables); i++ {
		if w.Variables[i-1].Name >= w.Variables[i].Name {
			t.Errorf("variables are not sorted: %v", w.Variables)
		}
	}
	if _, ok := got["NOT_A_VARIABLE"]; ok {
		t.Error("$${NAME} counts as a variable")
	}
}

// Rules keep their line, and a host from a variable stays out of the policy.
func TestRules(t *testing.T) {
	n := load(t, "network-rules").Container.Network
	find := func(target string) *firewall.Rule {
		for i := range n.Allow {
			if n.Allow[i].Target() == target && n.Allow[i].Preset == "" {
				return &n.Allow[i]
			}
		}
		t.Fatalf("no rule for %s in %v", target, n.Allow)
		return nil
	}
	tests := []struct{ target, ports, line string }{
		{"api.github.com", "80,443", "workshop.yaml:8"},
		{"**.example.org", "80,443", "workshop.yaml:11"},
		{"xn--bcher-kva.example", "80,443", "workshop.yaml:12"},
		{"db.internal", "5432", "workshop.yaml:14"},
		{"10.20.0.0/16", "5432", "workshop.yaml:16"},
		{"2001:db8::/32", "80,443,8000-8010", "workshop.yaml:17"},
		{"${DB_HOST:-db.example.org}", "5432", "workshop.yaml:18"},
	}
	for _, tt := range tests {
		r := find(tt.target)
		if got := firewall.FormatPorts(r.Ports); got != tt.ports || r.Line != tt.line {
			t.Errorf("%s: ports %s at %s, want %s at %s", tt.target, got, r.Line, tt.ports, tt.line)
		}
	}
	if r := find("${DB_HOST:-db.example.org}"); !r.Host.IsZero() || r.Value != "db.example.org" {
		t.Errorf("a host from a variable = %+v", r)
	}
	if !find("db.internal").Private {
		t.Error("private is lost")
	}
	if r := n.Deny[0]; firewall.FormatPorts(r.Ports) != "1-65535" {
		t.Errorf("a deny line without a port denies %v", r.Ports)
	}
	npm := 0
	for _, r := range n.Allow {
		if r.Preset == "npm" {
			npm++
		}
	}
	if npm == 0 || !n.OwnRoom.V || len(n.DNS) != 3 {
		t.Errorf("%d rules of npm, own room %v, dns %v", npm, n.OwnRoom.V, n.DNS)
	}
}

// Positions are exact in the presence of a byte order mark, CRLF and
// characters of several bytes.
func TestPositions(t *testing.T) {
	for _, tt := range []struct {
		name, data string
		want       diag.Pos
	}{
		{"plain", "workshop:\n  nmae: x\n", diag.Pos{Line: 2, Column: 3, Byte: 12}},
		{"CRLF", "workshop:\r\n  nmae: x\r\n", diag.Pos{Line: 2, Column: 3, Byte: 13}},
		{"byte order mark", "\xef\xbb\xbfworkshop: {nmae: x}\n", diag.Pos{Line: 1, Column: 12, Byte: 14}},
		{"characters", "workshop: {description: \"ü€𝄞\", nmae: x}\n", diag.Pos{Line: 1, Column: 32, Byte: 37}},
		{"after a folded scalar", "workshop:\n  description: >\n    ä\n    ö\n  nmae: x\n", diag.Pos{Line: 5, Column: 3, Byte: 43}},
	} {
		_, l := Load(t.Context(), singleFile([]byte(tt.data)), "workshop.yaml", testOptions())
		found := false
		for _, d := range l {
			if d.Code == "unknown-key" {
				found = true
				if d.Range.Start != tt.want {
					t.Errorf("%s: at %+v, want %+v", tt.name, d.Range.Start, tt.want)
				}
				if got := tt.data[d.Range.Start.Byte:d.Range.End.Byte]; got != "nmae" {
					t.Errorf("%s: the range holds %q", tt.name, got)
				}
			}
		}
		if !found {
			t.Errorf("%s: %v", tt.name, l)
		}
	}
}

// `.env` feeds variables, later --env-files win, the environment wins over all.
func TestEnvFiles(t *testing.T) {
	fsys := fstest.MapFS{
		"p/workshop.yaml":     {Data: []byte("workshop:\n  name: test\n  container:\n    image: i:1\n    env: {A: \"${A}\", B: \"${B}\", C: \"${C}\", SET: \"${SET}\"}\n  workers: [worker]\n")},
		"p/workers/worker.md": {Data: []byte("---\nallowed-tools: Read\n---\nx\n")},
		"p/.env":              {Data: []byte("A=dot\nB=dot\nC='dot $B'\nSET=dot\n")},
		"one.env":             {Data: []byte("B=one\nC=one-${A}\n")},
	}
	o := testOptions()
	o.EnvFiles = []string{"one.env"}
	w, l := Load(t.Context(), fsys, "p/workshop.yaml", o)
	if w == nil {
		t.Fatal(l)
	}
	for name, want := range map[string]string{"A": "dot", "B": "one", "C": "one-dot", "SET": "set"} {
		if got := w.Container.Env[name].V; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	o.EnvFiles = []string{"absent.env"}
	if _, l := Load(t.Context(), fsys, "p/workshop.yaml", o); !l.HasErrors() || l[0].Range.Filename != "absent.env" {
		t.Errorf("an --env-file that isn't there: %v", l)
	}
}

// The value of a secret in a broken .env must not be quoted (B11).
func TestBrokenEnvFileIsNotQuoted(t *testing.T) {
	fsys := os.DirFS(filepath.Join("testdata", "invalid", "env-file-bad"))
	_, l := Load(t.Context(), fsys, "workshop.yaml", testOptions())
	if got := text(t, fsys, l); !l.HasErrors() || strings.Contains(got, "hunter2") {
		t.Errorf("diagnostics:\n%s", got)
	}
}

// With a known root, links and dots are judged by where they lead (B7).
func TestRoot(t *testing.T) {
	project := func(source string) fs.FS {
		return fstest.MapFS{
			"workshop.yaml":     {Data: []byte("workshop:\n  name: test\n  container:\n    image: i:1\n    mounts: [{source: " + source + ", target: /m, outside_project: true}]\n  workers: [worker]\n")},
			"workers/worker.md": {Data: []byte("---\nallowed-tools: Read\n---\nx\n")},
			"up":                {Data: []byte("../../.ssh"), Mode: fs.ModeSymlink},
		}
	}
	for _, tt := range []struct {
		source, root, home, code string
	}{
		{"./src", "/home/me/p/q", "/home/me", ""},
		{"./up", "/home/me/p/q", "/home/me", "protected-path"},
		{"../../..", "/home/me/p/q", "/home/me", "protected-path"},
		{"../../.ssh/id", "/home/me/p/q", "/home/me", "protected-path"},
		{"../x", "/home/me/p/q", "/home/me", ""},
		{".", "/home/me", "/home/me", "protected-path"},
		{".", "/etc/p", "/home/me", "protected-path"},
		{"../../../../../../etc/ssl", "/srv/p", "", "protected-path"},
		{"/srv/data", "/srv/p", "", ""},
	} {
		_, l := Load(t.Context(), project(tt.source), "workshop.yaml", Options{Root: tt.root, Home: tt.home})
		got := ""
		if len(l) > 0 {
			got = l[0].Code
		}
		if got != tt.code {
			t.Errorf("%s in %s: %q, want %q (%v)", tt.source, tt.root, got, tt.code, l)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]Size{
		"0": 0, "1": 1, "1k": 1 << 10, "512M": 512 << 20, "512mb": 512 << 20, "2G": 2 << 30, "2GiB": 2 << 30, "1.5g": 3 << 29, "1 G": 1 << 30, "1P": 1 << 50,
		"-1": -1, "-2G": -1, "": -1, "G": -1, "1e9": -1, "0x10": -1, "inf": -1, "NaN": -1, "2P": -1, "1.2.3": -1, "1GG": -1, "99999999999999999999": -1, "+1": -1, "1_000": -1,
	} {
		got, err := ParseSize(in)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
}

// What a hint offers as a mount has all that the mount has.
func TestMountEntry(t *testing.T) {
	read := func(entry string) Mount {
		w, l := Load(t.Context(), singleFile([]byte("workshop:\n  name: test\n  container:\n    image: i:1\n    mounts:\n      - "+entry+"\n  workers: [worker]\n")), "workshop.yaml", testOptions())
		if l.HasErrors() {
			t.Fatalf("%s: %v", entry, l)
		}
		m := w.Container.Mounts[0]
		m.At, m.Source.Source.Range, m.Target.Source.Range = diag.Source{}, diag.Range{}, diag.Range{}
		return m
	}
	for _, tt := range []struct{ written, want string }{
		{"./src:/src", ""},
		{".:/w:rw", ""},
		{"{source: ./out, target: /out, mode: rw}", "./out:/out:rw"},
		{"{source: out, target: /out}", ""},
		{"{source: ., target: /w, mode: rw, git: rw}", ""},
		{"{source: ., target: /w, mode: rw, name: all, git: rw, sockets: allow}", ""},
		{`{source: ./in, target: /in, exclude: [".env", "**/*.pem"]}`, `{source: ./in, target: /in, exclude: [.env, "**/*.pem"]}`},
		{"{source: ~/data, target: /d, copy: true, outside_project: true}", ""},
		{`{source: "./a b$$", target: "/$$", mode: rw}`, `{source: "./a b$$", target: "/$$", mode: rw}`},
		{`{source: "./${SET:?}", target: /a}`, ""},
	} {
		m := read(tt.written)
		got := m.Entry()
		want := tt.want
		if want == "" {
			want = tt.written
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if d := cmp.Diff(m, read(got)); d != "" {
			t.Errorf("%s read again as %s: -want +got\n%s", tt.written, got, d)
		}
	}
}
