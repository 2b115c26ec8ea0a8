package facts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/compose"
)

// B8: what no worker could write isn't called a worker's: a mount inside of a writable
// one covers it, in each worker that has the writable one. All else is.
func TestOpenings(t *testing.T) {
	// Mounts are SOURCE:TARGET[:ro], the source below the project; "." is all of it.
	type workers map[string][]string
	replace := func(dir, name, text string) error { // as most editors save
		return errors.Join(os.WriteFile(filepath.Join(dir, "new"), []byte(text), 0o600), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, name)))
	}
	held := workers{"one": {".:/w", "workshop.yaml:/w/workshop.yaml:ro", ".vscode:/w/.vscode:ro"}}
	edit := func(dir string) error {
		return errors.Join(
			os.WriteFile(filepath.Join(dir, "workshop.yaml"), []byte("edited"), 0o600),
			os.WriteFile(filepath.Join(dir, ".vscode/tasks.json"), []byte("edited"), 0o600),
			os.WriteFile(filepath.Join(dir, ".vscode/new.json"), []byte("new"), 0o600),
			os.Remove(filepath.Join(dir, ".vscode/settings.json")))
	}
	all := []string{"new .vscode/new.json", "removed .vscode/settings.json", "changed .vscode/tasks.json", "changed workshop.yaml"}
	in := func(dir string, files ...string) (paths []string) {
		for _, f := range files {
			paths = append(paths, filepath.Join(dir, f))
		}
		return paths
	}
	for _, tt := range []struct {
		name    string
		up      []workers // each `up` in turn
		process bool
		before  func(dir string) error
		between func(dir string) error
		after   func(dir string) error
		want    []string
		way     *Way // in which a worker can have written workshop.yaml
	}{
		{name: "read-only in the one worker", up: []workers{held}},
		{name: "in both", up: []workers{{"one": held["one"], "two": {"workshop.yaml:/etc/w:ro", ".:/x", "workshop.yaml:/x/workshop.yaml:ro", ".vscode:/x/.vscode:ro"}}}},
		{name: "hidden by something else", up: []workers{{"one": {".:/w", "out:/w/workshop.yaml:ro", "out:/w/.vscode:ro"}}}},
		{name: "not in the other", up: []workers{{"one": held["one"], "two": {".:/x", ".vscode:/x/.vscode:ro"}}}, want: all[3:], way: &Way{Writable, []string{"two"}, ""}},
		{name: "not in a second mount of it", up: []workers{{"one": append([]string{".:/x"}, held["one"]...)}}, want: all},
		{name: "a writable mount of it", up: []workers{{"one": {".:/w", "workshop.yaml:/w/workshop.yaml:ro", ".vscode:/w/.vscode"}}}, want: all[:3]},
		{name: "another's writable mount of it", up: []workers{{"one": held["one"], "two": {".vscode:/v"}}}, want: all[:3]},
		{name: "not before", up: []workers{{"one": {".:/w"}}, held}, want: all, way: &Way{Writable, []string{"one"}, ""}},
		{name: "not later", up: []workers{held, {"one": {".:/w"}}}, want: all},
		{name: "no mount", up: []workers{{"one": {".:/w"}}}, want: all},
		{name: "no mount in two", up: []workers{{"one": {".:/w"}, "two": {".:/x"}}, {"three": {".:/w"}}}, want: all, way: &Way{Writable, []string{"one", "three", "two"}, ""}},
		{name: "the engine enforces none", up: []workers{held}, process: true, want: all, way: &Way{Kind: Writable}},
		{
			name: "a directory above could be renamed", up: []workers{{"one": {".:/w", "sub/conf/.envrc:/w/sub/conf/.envrc:ro", "sub:/w/sub"}}},
			after: func(dir string) error {
				return os.WriteFile(filepath.Join(dir, "sub/conf/.envrc"), []byte("edited"), 0o600)
			},
			want: []string{"changed sub/conf/.envrc"},
		},
		{
			name: "or not: they are mounts", up: []workers{{"one": {".:/w", "sub/conf/.envrc:/w/sub/conf/.envrc:ro", "sub/conf:/w/sub/conf", "sub:/w/sub"}}},
			after: func(dir string) error {
				return os.WriteFile(filepath.Join(dir, "sub/conf/.envrc"), []byte("edited"), 0o600)
			},
		},
		{
			name: "another name of the file", up: []workers{held},
			before: func(dir string) error {
				return os.Link(filepath.Join(dir, "workshop.yaml"), filepath.Join(dir, "out/name"))
			},
			after: func(dir string) error {
				return os.WriteFile(filepath.Join(dir, "out/name"), []byte("a worker's"), 0o600)
			},
			want: all[3:], way: &Way{Kind: Linked},
		},
		{
			name: "a link to what is writable", up: []workers{held},
			before: func(dir string) error {
				return errors.Join(os.WriteFile(filepath.Join(dir, "out/x"), nil, 0o600), os.Symlink("../out/x", filepath.Join(dir, ".vscode/launch.json")))
			},
			after: func(dir string) error {
				return os.WriteFile(filepath.Join(dir, "out/x"), []byte("a worker's"), 0o600)
			},
			want: []string{"changed out/x"},
		},
		{name: "replaced on the host, which takes the mount away", up: []workers{held}, after: func(dir string) error {
			return replace(dir, "workshop.yaml", "anyone's")
		}, want: all[3:], way: &Way{CoverLost, []string{"one"}, "workshop.yaml"}},
		{name: "replaced with the same text", up: []workers{held}, after: func(dir string) error {
			return replace(dir, "workshop.yaml", "mine")
		}},
		{name: "replaced until its inode number is used again, which some file systems do", up: []workers{held}, after: func(dir string) error {
			was, err := os.Lstat(filepath.Join(dir, "workshop.yaml"))
			for range 100 {
				err = errors.Join(err, replace(dir, "workshop.yaml", "anyone's"))
				if is, e := os.Lstat(filepath.Join(dir, "workshop.yaml")); e != nil || os.SameFile(was, is) {
					return errors.Join(err, e)
				}
			}
			return err
		}, want: all[3:]},
		{name: "a directory into which the host's git writes what a worker committed", up: []workers{{"one": append([]string{"out:/w/.git"}, held["one"]...)}}, want: all[:3]},
		{name: "a directory replaced on the host", up: []workers{held}, after: func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, ".vscode"), filepath.Join(dir, "old")), os.Mkdir(filepath.Join(dir, ".vscode"), 0o700),
				os.WriteFile(filepath.Join(dir, ".vscode/tasks.json"), []byte("anyone's"), 0o600))
		}, want: []string{"removed .vscode/settings.json", "changed .vscode/tasks.json"}},
		{name: "replaced before a later up, which mounts the new one", up: []workers{held, held}, between: func(dir string) error {
			return replace(dir, "workshop.yaml", "anyone's")
		}, after: func(string) error { return nil }, want: all[3:]},
		{name: "the same, and a later up that covers less", up: []workers{held, {"one": held["one"][:2]}}, between: func(dir string) error {
			return replace(dir, "workshop.yaml", "anyone's")
		}, after: func(string) error { return nil }, want: all[3:]},
	} {
		if tt.between == nil {
			tt.between = func(string) error { return nil }
		}
		t.Run(tt.name, func(t *testing.T) {
			dir, state := t.TempDir(), t.TempDir()
			for _, f := range []string{"workshop.yaml", ".vscode/tasks.json", ".vscode/settings.json", "sub/conf/.envrc", "out/a"} {
				write(t, dir, f, "mine")
			}
			if tt.before != nil {
				if err := tt.before(dir); err != nil {
					t.Fatal(err)
				}
			}
			var r *Record
			var baseline Snapshot
			for _, up := range tt.up {
				c := &compose.Compiled{
					Project: &types.Project{Services: types.Services{}}, Roles: map[string]compose.Role{},
					Facts: &compose.Facts{Project: "p", ProjectDir: dir, RuntimeDir: filepath.Join(dir, "run")},
				}
				for name, mounts := range up {
					var s types.ServiceConfig
					for _, m := range mounts {
						source, rest, _ := strings.Cut(m, ":")
						target, readOnly := strings.CutSuffix(rest, ":ro")
						s.Volumes = append(s.Volumes, types.ServiceVolumeConfig{Type: types.VolumeTypeBind, Source: filepath.Join(dir, source), Target: target, ReadOnly: readOnly})
					}
					c.Project.Services[name], c.Roles[name] = s, compose.RoleWorker
				}
				if r != nil {
					if err := tt.between(dir); err != nil {
						t.Fatal(err)
					}
				}
				later := NewRecord(state, c, true, !tt.process)
				later.Own = in(dir, "workshop.yaml")
				if r != nil {
					later = r.With(later)
				}
				now, err := later.Take(t.Context(), dir, os.LookupEnv)
				if err != nil {
					t.Fatal(err)
				}
				if baseline != nil {
					now = r.Extend(baseline, now)
				}
				if baseline = now; later.Keep(baseline) != nil {
					t.Fatal("the record isn't written")
				}
				if r, err = LoadRecord(state, "p"); err != nil {
					t.Fatal(err)
				}
			}
			if tt.after == nil {
				tt.after = edit
			}
			if err := tt.after(dir); err != nil {
				t.Fatal(err)
			}
			after, err := r.Take(t.Context(), dir, os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range r.Changes(baseline, after) {
				rel, _ := filepath.Rel(dir, c.Path)
				got = append(got, string(c.Kind)+" "+rel)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("changes: %q, want %q", got, tt.want)
			}
			if tt.way == nil {
				return
			}
			way := r.Way(filepath.Join(dir, "workshop.yaml"))
			way.Cover = strings.TrimPrefix(way.Cover, dir+"/")
			if diff := cmp.Diff(*tt.way, way); diff != "" {
				t.Errorf("way (-want +got):\n%s", diff)
			}
		})
	}
}

// B40: another project's file that no worker could write is taken; after an edit too.
func TestUnopenedFileOfAnotherProject(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	write(t, dir, "sub/workshop.yaml", "mine")
	sub := filepath.Join(dir, "sub")
	file := filepath.Join(sub, "workshop.yaml")
	for _, open := range []bool{false, true} {
		r := &Record{Project: "p", Dir: dir, Roots: []string{dir}, Openings: []Opening{{Source: dir, Covers: []Cover{{sub, entryID(sub)}}}}, at: filepath.Join(state, "p")}
		if open {
			r.Openings = nil
		}
		s, err := r.Take(t.Context(), dir, os.LookupEnv)
		if err := errors.Join(err, r.Keep(s)); err != nil {
			t.Fatal(err)
		}
		write(t, dir, "sub/workshop.yaml", "edited "+filepath.Base(state))
		if got := WrittenBy(file, []*Record{r}) != nil; got != open {
			t.Errorf("open %v: written %v", open, got)
		}
		write(t, dir, "sub/workshop.yaml", "mine")
	}
}

// B8: where a file system doesn't tell whether a mount was lost, nobody says that it was.
func TestWayByALostCover(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "workers/one.md", "mine")
	at := filepath.Join(dir, "workers")
	for id, want := range map[string]WayKind{"": CoverUnknown, "another": CoverLost} {
		r := &Record{Openings: []Opening{{Source: dir, Covers: []Cover{{at, id}}, Workers: []string{"one"}}}}
		if got := r.Way(filepath.Join(at, "one.md")); got.Kind != want || got.Cover != at {
			t.Errorf("a cover with ID %q: %+v, want kind %d and the cover %s", id, got, want, at)
		}
	}
}
