package facts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// B8: what the first `up` found is what later looks are compared with; a later one
// adds what its new mounts bring, and replaces nothing.
func TestRecord(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, dir, "a/.envrc", "mine")
	write(t, dir, "b/.envrc", "mine too")
	r := &Record{Project: "p", Dir: dir, Named: true, RuntimeDir: at("\xff"), Roots: []string{at("a")}, Own: []string{at("workshop.yaml")}, at: filepath.Join(state, "p")}
	take := func(r *Record) Snapshot {
		t.Helper()
		s, err := r.Take(t.Context(), dir, os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := r.Keep(take(r)); err != nil {
		t.Fatal(err)
	}
	kept, err := LoadRecord(state, "p")
	if err != nil {
		t.Fatal(err)
	}
	if kept.RuntimeDir != r.RuntimeDir || !slices.Equal(kept.Roots, r.Roots) || !kept.Named {
		t.Errorf("kept %+v, want %+v", kept, r)
	}
	write(t, dir, "a/.envrc", "a worker's")
	write(t, dir, "a/.mcp.json", "a worker's")

	// The later `up` mounts b, and a no more.
	later := kept.With(&Record{Project: "p", Dir: dir, Roots: []string{at("b")}, at: r.at})
	if !later.Named || !within(at("a/x"), later.Roots) || !within(at("b/x"), later.Roots) {
		t.Errorf("later: %+v", later)
	}
	before, err := kept.Baseline()
	if err != nil {
		t.Fatal(err)
	}
	now := take(later)
	before = kept.Extend(before, now)
	want := []Change{{Path: at("a/.envrc"), Kind: Changed}, {Path: at("a/.mcp.json"), Kind: New}}
	if got := before.Compare(now); !slices.Equal(got, want) {
		t.Errorf("at the later up: %v, want %v", got, want)
	}
	write(t, dir, "b/.envrc", "a worker's")
	want = append(want, Change{Path: at("b/.envrc"), Kind: Changed})
	if got := before.Compare(take(later)); !slices.Equal(got, want) {
		t.Errorf("after it: %v, want %v", got, want)
	}

	if err := os.Remove(filepath.Join(state, "p", snapshotFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Baseline(); err == nil {
		t.Error("no baseline, and no error")
	}
	if err := os.WriteFile(filepath.Join(state, "p", recordFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Records(state); err == nil {
		t.Error("a record that can't be read is no error")
	}
	if err := ForgetRecord(state, "p"); err != nil {
		t.Fatal(err)
	}
	if all, err := Records(state); len(all) > 0 || err != nil {
		t.Errorf("forgotten: %v, %v", all, err)
	}
}

// B8: a root that has another identity is a change until it is renewed; another device
// number alone, as after a restart of the machine, is none.
func TestReplacedRoots(t *testing.T) {
	const id = "8:1:42:1700000000.000000001"
	for _, tt := range []struct {
		name, before, now string
		want              bool
	}{
		{"the same", id, id, false},
		{"on another device number", id, "253:7:42:1700000000.000000001", false},
		{"another inode", id, "8:1:43:1700000000.000000001", true},
		{"the inode number again, born later", id, "8:1:42:1700000000.000000002", true},
		{"it is gone", id, "", true},
		{"it isn't known what was there", "", id, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := replaced(tt.before, tt.now); got != tt.want {
				t.Errorf("replaced(%q, %q) = %v, want %v", tt.before, tt.now, got, tt.want)
			}
		})
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, dir, "a/x", "")
	write(t, dir, "b/x", "")
	was := &Record{Roots: []string{at("a")}}
	was.Renew()
	if was.RootIDs[at("a")] == "" {
		t.Skip("the file system keeps no time of birth")
	}
	if err := os.Rename(at("a"), at("b/a")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a/x", "")
	later := &Record{Roots: []string{at("a"), at("b")}}
	later.Renew()
	r := was.With(later)
	want := []Change{{Path: at("a"), Kind: Replaced}}
	if got := r.Changes(nil, nil); !slices.Equal(got, want) {
		t.Errorf("changes %v, want %v", got, want)
	}
	r.Renew()
	if got := r.Changes(nil, nil); len(got) > 0 {
		t.Errorf("renewed: changes %v, want none", got)
	}
}

// B8, B40: links of the project, where no worker writes, that lead programs of the
// host, or this one, to what workers write.
func TestProjectLinks(t *testing.T) {
	for _, tt := range []struct {
		name, link, to string
		before         func(dir string)
		attack         func(dir string)
		want           []string
	}{
		{name: "file", link: ".envrc", to: "out/e", attack: func(dir string) { write(t, dir, "out/e", "evil") }, want: []string{"new out/e"}},
		{name: "directory", link: ".vscode", to: "out/v", attack: func(dir string) { write(t, dir, "out/v/tasks.json", "evil") }, want: []string{"new out/v", "new out/v/tasks.json"}},
		{name: "of the mount", link: ".claude", to: "out", attack: func(dir string) { write(t, dir, "out/settings.json", "evil") }, want: []string{"new out/settings.json"}},
		{name: "around the mount", link: "sub/.cursor", to: "..", attack: func(dir string) { write(t, dir, "out/rules", "evil") }, want: []string{"new out/rules"}},
		{name: "of some files", link: ".cargo", to: "out/c", attack: func(dir string) { write(t, dir, "out/c/config.toml", "evil") }, want: []string{"new out/c", "new out/c/config.toml"}},
		{name: "in a directory that counts", link: ".github/x.yml", to: "../out/x", attack: func(dir string) { write(t, dir, "out/x", "evil") }, want: []string{"new out/x"}},
		{name: "in a git directory", link: ".git/hooks", to: "../out/h", attack: func(dir string) { write(t, dir, "out/h/pre-commit", "evil") }, want: []string{"new out/h", "new out/h/pre-commit"}},
		{
			name: "on and out again", link: ".envrc", to: "out/e",
			before: func(dir string) { write(t, dir, "out/e", ""); write(t, dir, "scripts/deploy", "") },
			attack: func(dir string) {
				_ = os.Remove(filepath.Join(dir, "out/e"))
				symlink(t, "../scripts/deploy", filepath.Join(dir, "out/e"))
			},
			want: []string{"changed .envrc", "removed out/e"},
		},
		{name: "the workshop's own", link: "workshop.yaml", to: "out/conf", attack: func(dir string) { write(t, dir, "out/conf", "evil") }, want: []string{"new out/conf"}},
		{name: "a worker's directory", link: "workers", to: "out/workers", attack: func(dir string) { write(t, dir, "out/workers/one.md", "evil") }, want: []string{"new out/workers/one.md"}},
		{name: "control: another name", link: "results", to: "out/r", attack: func(dir string) { write(t, dir, "out/r", "work") }},
		{name: "control: elsewhere", link: ".envrc", to: "own", before: func(dir string) { write(t, dir, "own", "") }, attack: func(dir string) { write(t, dir, "own", "mine") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			if err := errors.Join(os.MkdirAll(filepath.Dir(at(tt.link)), 0o755), os.MkdirAll(at("out"), 0o755)); err != nil {
				t.Fatal(err)
			}
			symlink(t, tt.to, at(tt.link))
			if tt.before != nil {
				tt.before(dir)
			}
			r := &Record{Project: "p", Dir: dir, Roots: []string{at("out")}, Own: []string{at("workshop.yaml"), at("workers/one.md")}}
			before, err := r.Take(t.Context(), at("home"), os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			tt.attack(dir)
			after, err := r.Take(t.Context(), at("home"), os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range before.Compare(after) {
				rel, _ := filepath.Rel(dir, c.Path)
				got = append(got, string(c.Kind)+" "+rel)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("changes: %q, want %q", got, tt.want)
			}
		})
	}
}
