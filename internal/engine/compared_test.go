package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/made"
)

// TestCompared: a note is of one start of one service of one project, and of one user.
func TestCompared(t *testing.T) {
	c := Compared{Dir: t.TempDir()}
	const long = "0123456789abcdef 2026-11-28T11:22:33.123456789Z 71520d26-3472-472f-a1c6-36928ece8e81"
	for _, service := range []string{"one", "two"} {
		if err := c.Keep("p", service, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Keep("p", "two", "later"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "outside"), []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(c.Dir, "outside"), filepath.Join(c.Dir, "p", "compared", "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name                    string
		of                      Compared
		project, service, start string
		want                    bool
	}{
		{"as noted", c, "p", "one", long, true},
		{"a later one", c, "p", "two", "later", true},
		{"one before", c, "p", "two", long, false},
		{"its beginning", c, "p", "one", long[:20], false},
		{"more", c, "p", "one", long + "0", false},
		{"no start", c, "p", "three", "", false},
		{"another service", c, "p", "three", long, false},
		{"another project", c, "q", "one", long, false},
		{"another user", Compared{Dir: t.TempDir()}, "p", "one", long, false},
		{"no directory", Compared{}, "p", "one", long, false},
		{"another path", c, "p", "../../outside", long, false},
		{"a link out of it", c, "p", "link", long, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.of.Has(tt.project, tt.service, tt.start); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if err := (Compared{}).Keep("p", "one", long); err == nil || !strings.Contains(err.Error(), "HOME") {
		t.Errorf("without a directory: %v", err)
	}
	if info, err := os.Stat(filepath.Join(c.Dir, "p")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestReplaced: a source is another one once its place has another file, or none; a note of
// them is of one start.
func TestReplaced(t *testing.T) {
	c := Compared{Dir: t.TempDir()}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var all []Source
	for _, name := range []string{"same", "renamed", "other", "gone"} {
		if err := os.Mkdir(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
		all = append(all, Source{Target: "/" + name, Path: at(name), File: made.FileID(at(name))})
	}
	if err := c.Keep("p", "w", "start", all...); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.Rename(at("renamed"), at("new")), os.Rename(at("other"), at("other2")), os.Mkdir(at("other"), 0o755), os.Remove(at("gone"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	noted, has := c.Sources("p", "w", "start")
	if got := strings.Join(Replaced(noted), " "); !has || got != "/renamed /other /gone" {
		t.Errorf("got %q, %v", got, has)
	}
	if !c.Has("p", "w", "start") {
		t.Error("it was compared")
	}
	if noted, has := c.Sources("p", "w", "later"); has || noted != nil {
		t.Errorf("of another start: %v", noted)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "p", "compared", "w"), []byte("start\n[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.Has("p", "w", "start") {
		t.Error("half a note counts")
	}
}
