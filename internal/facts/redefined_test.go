package facts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// B8: another project's worker restores what its own baseline has of a definition, or
// removes what that hasn't. The record of the definition's project has what was accepted.
func TestOlderBaselineOfAnotherProject(t *testing.T) {
	for name, tt := range map[string]struct {
		before, accepted, now string // texts; empty: no file
		unused                bool   // the project's definition hadn't the path
		want                  bool
	}{
		"as accepted":               {before: "v1", accepted: "v2", now: "v2"},
		"restored":                  {before: "v1", accepted: "v2", now: "v1", want: true},
		"another":                   {before: "v1", accepted: "v2", now: "v3", want: true},
		"removed, as it was before": {accepted: "v2", want: true},
		"restored after a removal":  {before: "v1", now: "v1", want: true},
		"still removed":             {before: "v1"},
		"used for the first time":   {before: "v1", unused: true, now: "v1"},
		"used, and written":         {before: "v1", unused: true, now: "v2", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, state := t.TempDir(), t.TempDir()
			sub := filepath.Join(dir, "sub")
			file := filepath.Join(sub, ".env")
			put := func(text string) {
				t.Helper()
				err := os.MkdirAll(sub, 0o755)
				if text == "" {
					err = errors.Join(err, os.RemoveAll(file))
				} else {
					err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			definition := func(text string) Definition {
				d := Definition{Dir: sub, Known: map[string]string{}, Raw: map[string][]byte{}}
				if text == "" {
					d.Absent = []string{file}
				} else {
					d.Known[file], d.Raw[file] = text, []byte(text)
				}
				return d
			}
			put(tt.before)
			outer := &Record{Project: "outer", Dir: dir, Roots: []string{dir}, at: filepath.Join(state, "outer")}
			baseline := Snapshot{}
			if err := errors.Join(baseline.file(file), outer.Keep(baseline)); err != nil {
				t.Fatal(err)
			}
			put(tt.accepted)
			accepted := definition(tt.accepted)
			own := &Record{Project: "own", Dir: sub, at: filepath.Join(state, "own")}
			if !tt.unused {
				own.Definition, own.Absent = accepted.Known, accepted.Absent
			}
			if err := own.Keep(Snapshot{}); err != nil {
				t.Fatal(err)
			}
			redefined := func(project string) bool {
				all, err := Records(state)
				if err != nil {
					t.Fatal(err)
				}
				put(tt.now)
				list := definition(tt.now).Redefined(project, all)
				for _, x := range list {
					if x.By.Project != "outer" || project != "" && !tt.unused && x.Before != tt.accepted {
						t.Errorf("by %s, before %q", x.By.Project, x.Before)
					}
				}
				return len(list) > 0
			}
			if got := redefined("own"); got != tt.want {
				t.Errorf("redefined: %v, want %v", got, tt.want)
			}
			if tt.unused {
				return
			}
			// Noted there, it holds after the own record is forgotten, too.
			put(tt.accepted)
			if err := errors.Join(outer.Note([]string{file}, accepted), ForgetRecord(state, "own")); err != nil {
				t.Fatal(err)
			}
			if got := redefined(""); got != tt.want {
				t.Errorf("redefined after it was noted: %v, want %v", got, tt.want)
			}
		})
	}
}

// B8: absence is part of what a later `up` keeps.
func TestAbsentIsKept(t *testing.T) {
	r := &Record{Definition: map[string]string{"/p/.env": "v1", "/p/workshop.yaml": "w"}, Absent: []string{"/p/other"}}
	with := r.With(&Record{Definition: map[string]string{"/p/workshop.yaml": "w", "/p/other": "o"}, Absent: []string{"/p/.env"}})
	if _, there := with.Definition["/p/.env"]; there || !slices.Equal(with.Absent, []string{"/p/.env"}) {
		t.Errorf("%v, absent %v", with.Definition, with.Absent)
	}
}

// B8: what this program writes is noted by each record that concerns it, and no older
// text is what was there before.
func TestRewriteOfAllRecords(t *testing.T) {
	for name, tt := range map[string]struct{ older, down, want bool }{
		"seen by both":                     {},
		"the other has an older one":       {older: true},
		"the project isn't up":             {down: true},
		"isn't up, and nobody accepted it": {down: true, older: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, state := t.TempDir(), t.TempDir()
			file := filepath.Join(dir, "sub/workshop.yaml")
			put := func(text string) { write(t, dir, "sub/workshop.yaml", text) }
			outer := &Record{Project: "outer", Dir: dir, Roots: []string{dir}, at: filepath.Join(state, "outer")}
			put("v1")
			if !tt.older {
				put("v2")
			}
			baseline := Snapshot{}
			if err := errors.Join(baseline.file(file), outer.Keep(baseline)); err != nil {
				t.Fatal(err)
			}
			put("v2")
			var own *Record
			project := ""
			if !tt.down {
				project, own = "own", &Record{Project: "own", Dir: filepath.Dir(file), at: filepath.Join(state, "own"), Definition: map[string]string{file: "v2"}}
				if err := own.Keep(Snapshot{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := Rewrite(own, []*Record{outer}, file, []byte("v2"), []byte("v3"), func() error { put("v3"); return nil }); err != nil {
				t.Fatal(err)
			}
			redefined := func(project, text string) bool {
				t.Helper()
				put(text)
				all, err := Records(state)
				if err != nil {
					t.Fatal(err)
				}
				d := Definition{Dir: filepath.Dir(file), Known: map[string]string{file: text}, Raw: map[string][]byte{file: []byte(text)}}
				return len(d.Redefined(project, all)) > 0
			}
			if got := redefined(project, "v3"); got != tt.want {
				t.Errorf("what was written is redefined: %v", got)
			}
			if tt.want {
				return
			}
			if !redefined(project, "v2") || !redefined("", "v2") || !redefined(project, "v1") || !redefined("", "v1") {
				t.Error("an older text is accepted")
			}
		})
	}
}
