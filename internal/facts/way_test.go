package facts

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// B8, B40: a worker decides what is read where symbolic links, also of directories, lead
// through what it may write.
func TestLinksOnTheWay(t *testing.T) {
	const evil = "allowed-tools: Bash"
	swap := func(dir, name, to string) error {
		return errors.Join(os.Rename(filepath.Join(dir, name), filepath.Join(dir, "out/old")), os.Symlink(to, filepath.Join(dir, name)))
	}
	for _, tt := range []struct {
		name   string
		links  map[string]string
		file   string // of the definition
		covers []string
		attack func(dir string) error
		safe   bool
		way    Way
	}{
		{name: "a directory in the mount", links: map[string]string{"workers": "out/w"}, file: "workers/one.md",
			attack: func(dir string) error { return os.WriteFile(filepath.Join(dir, "out/w/one.md"), []byte(evil), 0o600) },
			way:    Way{Through, []string{"one"}, "out/w"}},
		{name: "replaced by a link to where nobody writes", links: map[string]string{"workers": "out/w"}, file: "workers/one.md",
			attack: func(dir string) error { return swap(dir, "out/w", "../examples") }, way: Way{Through, []string{"one"}, "out/w"}},
		{name: "through the mount and out again", links: map[string]string{"workers": "out/w/../../safe"}, file: "workers/one.md",
			attack: func(dir string) error { return swap(dir, "out/w", "../examples/deep/w") }, way: Way{Through, []string{"one"}, "out/w"}},
		{name: "a link in the mount", links: map[string]string{"workers": "out/l", "out/l": "../safe"}, file: "workers/one.md",
			attack: func(dir string) error { return swap(dir, "out/l", "../examples") }, way: Way{Through, []string{"one"}, "out/l"}},
		{name: "below the link", links: map[string]string{"conf": "out"}, file: "conf/w/one.md",
			attack: func(dir string) error { return os.WriteFile(filepath.Join(dir, "out/w/one.md"), []byte(evil), 0o600) },
			way:    Way{Through, []string{"one"}, "out/w"}},
		{name: "a directory in the mount itself, replaced", file: "out/w/one.md",
			attack: func(dir string) error { return swap(dir, "out/w", "../examples") }, way: Way{Writable, []string{"one"}, ""}},
		{name: "the file itself is a link", links: map[string]string{"agents/one.md": "../out/w/one.md"}, file: "agents/one.md",
			attack: func(dir string) error { return os.WriteFile(filepath.Join(dir, "out/w/one.md"), []byte(evil), 0o600) },
			way:    Way{Through, []string{"one"}, "out/w"}},
		{name: "control: such a link to where nobody writes", links: map[string]string{"agents/one.md": "../safe/one.md"}, file: "agents/one.md",
			attack: func(dir string) error { return os.WriteFile(filepath.Join(dir, "safe/one.md"), []byte(evil), 0o600) }, safe: true, way: Way{Kind: Linked}},
		{name: "control: it has a read-only mount", links: map[string]string{"workers": "out/w"}, file: "workers/one.md", covers: []string{"out/w"},
			attack: func(dir string) error { return os.WriteFile(filepath.Join(dir, "out/w/one.md"), []byte(evil), 0o600) }, safe: true, way: Way{Kind: Linked}},
		{name: "control: a link to where nobody writes", links: map[string]string{"workers": "safe"}, file: "workers/one.md",
			attack: func(dir string) error { return os.WriteFile(filepath.Join(dir, "safe/one.md"), []byte(evil), 0o600) }, safe: true, way: Way{Kind: Linked}},
		{name: "control: by way of the mount's own directory, which nobody inside renames", links: map[string]string{"workers": "out/../safe"}, file: "workers/one.md",
			attack: func(dir string) error { return os.WriteFile(filepath.Join(dir, "safe/one.md"), []byte(evil), 0o600) }, safe: true, way: Way{Kind: Linked}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			at := func(name string) string { return filepath.Join(dir, name) }
			write(t, dir, "out/w/one.md", "mine")
			write(t, dir, "safe/one.md", "mine")
			write(t, dir, "examples/one.md", evil)
			write(t, dir, "examples/safe/one.md", evil)
			write(t, dir, "examples/deep/w/x", "")
			write(t, dir, "agents/x", "")
			for name, to := range tt.links {
				symlink(t, to, at(name))
			}
			r := &Record{Project: "p", Dir: dir, Roots: []string{at("out")}, Own: []string{at(tt.file)}, at: filepath.Join(t.TempDir(), "p"),
				Openings: []Opening{{Source: at("out"), Workers: []string{"one"}}}, Definition: map[string]string{at(tt.file): "mine"}}
			for _, c := range tt.covers {
				r.Openings[0].Covers = append(r.Openings[0].Covers, Cover{at(c), entryID(at(c))})
			}
			take := func() Snapshot {
				s, err := r.Take(t.Context(), at("home"), os.LookupEnv)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			before := take()
			if err := r.Keep(before); err != nil {
				t.Fatal(err)
			}
			redefined := func(project string, all ...*Record) bool {
				text, err := os.ReadFile(at(tt.file))
				if err != nil {
					t.Fatal(err)
				}
				d := Definition{Dir: dir, Known: map[string]string{at(tt.file): string(text)}, Raw: map[string][]byte{at(tt.file): text}}
				list := d.Redefined(project, all)
				return slices.ContainsFunc(list, func(x Redefinition) bool { return x.Path == at(tt.file) })
			}
			// Another project whose file it is, and which accepted it.
			another := &Record{Project: "q", Dir: at("safe"), Definition: r.Definition}
			if redefined("p", r) || redefined("q", r, another) {
				t.Error("what is as it was differs")
			}
			if err := tt.attack(dir); err != nil {
				t.Fatal(err)
			}
			if redefined("p", r) == tt.safe || redefined("q", r, another) == tt.safe {
				t.Errorf("obeyed: %v, want %v", !tt.safe, tt.safe)
			}
			if got := len(r.Changes(before, take())) == 0; got != tt.safe {
				t.Errorf("no change: %v, want %v", got, tt.safe)
			}
			way := r.Way(at(tt.file))
			if way.Cover != "" {
				way.Cover, _ = filepath.Rel(dir, way.Cover)
			}
			if way.Kind != tt.way.Kind || way.Cover != tt.way.Cover || !slices.Equal(way.Workers, tt.way.Workers) {
				t.Errorf("way %+v, want %+v", way, tt.way)
			}
		})
	}
}

// B8: the same of files that programs of the host run: what leads there is named where a
// worker replaces a directory or a link by one to a file that it can't write.
func TestWatchedWaysAreReplaced(t *testing.T) {
	for _, tt := range []struct {
		name, root string
		files      map[string]string
		links      map[string]string
		own        string
		replace    string // by a link to ../ev; empty: out/conf
	}{
		{name: "an included file of git", files: map[string]string{".git/config": "[include]\n\tpath = ../conf/f\n"}, links: map[string]string{"conf": "out/conf"}},
		{name: "through another link", files: map[string]string{".git/config": "[include]\n\tpath = ../conf/f\n"}, links: map[string]string{"conf": "out/l", "out/l": "conf"}, replace: "out/l"},
		{name: "a program of git", files: map[string]string{".git/config": "[core]\n\tfsmonitor = conf/f\n"}, links: map[string]string{"conf": "out/conf"}},
		{name: "in the mount", files: map[string]string{".git/config": "[core]\n\tfsmonitor = out/conf/f\n"}},
		{name: "hooks", files: map[string]string{".git/config": "[core]\n\thooksPath = conf\n"}, links: map[string]string{"conf": "out/l", "out/l": "conf"}, replace: "out/l"},
		{name: "a link in the mount", links: map[string]string{"out/.envrc": "conf/f"}},
		{name: "a link to a link in the mount", links: map[string]string{"out/.envrc": "l", "out/l": "conf/f"}, replace: "out/l"},
		{name: "the workshop's own", own: "workers/f", links: map[string]string{"workers": "out/conf"}},
		{name: "the workshop's own, all writable", root: ".", own: "workers/f", links: map[string]string{"workers": "out/conf"}},
		{name: "the same, without a link before", root: ".", own: "out/conf/f"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			at := func(name string) string { return filepath.Join(dir, name) }
			for name, text := range tt.files {
				write(t, dir, name, text)
			}
			write(t, dir, ".git/HEAD", "ref: refs/heads/main\n")
			write(t, dir, ".git/objects/x", "")
			write(t, dir, ".git/refs/x", "")
			write(t, dir, "out/conf/f", "mine")
			write(t, dir, "ev/f", "evil")
			for name, to := range tt.links {
				symlink(t, to, at(name))
			}
			root := filepath.Join(dir, cmp.Or(tt.root, "out"))
			r := &Record{Project: "p", Dir: dir, Roots: []string{root}, Openings: []Opening{{Source: root}}}
			if tt.own != "" {
				r.Own = []string{at(tt.own)}
			}
			changes := func(before Snapshot) (Snapshot, []Change) {
				now, err := r.Take(t.Context(), at("home"), func(name string) (string, bool) { return "/dev/null", name == "GIT_CONFIG_SYSTEM" })
				if err != nil {
					t.Fatal(err)
				}
				return now, r.Changes(before, now)
			}
			before, _ := changes(nil)
			if _, got := changes(before); len(got) > 0 {
				t.Fatalf("nothing was changed, and it is %v", got)
			}
			replace, to := cmp.Or(tt.replace, "out/conf"), "../ev"
			if tt.links["out/.envrc"] == "l" {
				to = "../ev/f"
			}
			if err := errors.Join(os.Rename(at(replace), at("out/old")), os.Symlink(to, at(replace))); err != nil {
				t.Fatal(err)
			}
			if _, got := changes(before); len(got) == 0 {
				t.Error("nothing is named")
			} else {
				t.Log(got)
			}
		})
	}
}
