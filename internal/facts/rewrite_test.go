package facts

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What this program writes itself is no change of a worker's, and doesn't hide
// one (B8).
func TestRewrite(t *testing.T) {
	for name, tt := range map[string]struct {
		watched, changed, fails, swapped bool
		want                             int // changes afterwards
	}{
		"watched":              {watched: true},
		"changed before":       {watched: true, changed: true, want: 1},
		"not watched":          {},
		"failed to write":      {watched: true, fails: true},
		"another in its place": {watched: true, swapped: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir, file := t.TempDir(), filepath.Join(t.TempDir(), "workshop.yaml")
			put := func(text string) error { return os.WriteFile(file, []byte(text), 0o644) }
			if err := put("before"); err != nil {
				t.Fatal(err)
			}
			s := Snapshot{filepath.Join(dir, "other"): "dir"}
			if tt.watched {
				if err := s.file(file); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Save(dir); err != nil {
				t.Fatal(err)
			}
			if tt.changed {
				if err := put("by a worker"); err != nil {
					t.Fatal(err)
				}
			}
			failed := errors.New("no space")
			others := []*Record{{at: t.TempDir()}, {at: dir}}
			err := Rewrite(nil, others, file, []byte("before"), []byte("after"), func() error {
				if tt.fails {
					return failed
				}
				if tt.swapped {
					return put("by a worker")
				}
				return put("after")
			})
			if errors.Is(err, failed) != tt.fails || err != nil && !tt.fails {
				t.Fatal(err)
			}
			before, err := LoadSnapshot(dir)
			if err != nil {
				t.Fatal(err)
			}
			now := Snapshot{filepath.Join(dir, "other"): "dir"}
			if tt.watched {
				if err := now.file(file); err != nil {
					t.Fatal(err)
				}
			}
			if got := before.Compare(now); len(got) != tt.want {
				t.Errorf("changes: %v, want %d", got, tt.want)
			}
		})
	}
}

// A file that this program makes is no new one of a worker, and doesn't hide one (B8).
func TestRewriteNew(t *testing.T) {
	for name, tt := range map[string]struct {
		worker, closed bool
		want           int // changes afterwards
	}{
		"a new one":        {},
		"a worker's":       {worker: true, want: 2}, // and its directory
		"not for a worker": {closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			project, state := t.TempDir(), t.TempDir()
			file := filepath.Join(project, ".vscode", "mcp.json")
			put := func(text string) error {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					return err
				}
				return os.WriteFile(file, []byte(text), 0o644)
			}
			r := &Record{Project: "p", Dir: project, at: state}
			if !tt.closed {
				r.Roots = []string{project}
			}
			take := func() Snapshot {
				s, err := r.Take(t.Context(), t.TempDir(), os.LookupEnv)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			if err := r.Keep(take()); err != nil {
				t.Fatal(err)
			}
			if tt.worker {
				if err := put("by a worker"); err != nil {
					t.Fatal(err)
				}
			}
			if got := r.Changed(file); got != tt.worker {
				t.Errorf("changed: got %t, want %t", got, tt.worker)
			}
			if err := Rewrite(r, nil, file, nil, []byte("after"), func() error { return put("after") }); err != nil {
				t.Fatal(err)
			}
			before, err := r.Baseline()
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Changes(before, take()); len(got) != tt.want {
				t.Errorf("changes: got %v, want %d", got, tt.want)
			}
			if got := r.Changed(file); got != tt.worker {
				t.Errorf("changed afterwards: got %t, want %t", got, tt.worker)
			}
		})
	}
}
