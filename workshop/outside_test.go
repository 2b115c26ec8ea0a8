package workshop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// linked makes a project in which name is a symbolic link to a file next to the
// project that holds text.
func linked(t *testing.T, name, text string) (dir string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "repo")
	files := map[string]string{
		"workshop.yaml":    "workshop:\n  name: test\n  container: {image: \"i:1\", env: {A: \"${A:-none}\"}}\n  workers: [one]\n",
		"workers/one.md":   "---\nname: one\nallowed-tools: Read\noutput_schema_ref: result.json\n---\nx\n",
		"workers/two.json": "{}",
	}
	files["workers/result.json"] = "{}"
	for file, data := range files {
		file = filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := filepath.Join(top, "elsewhere"+filepath.Ext(name))
	if err := os.WriteFile(elsewhere, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, name)
	_ = os.Remove(link)
	rel, err := filepath.Rel(filepath.Dir(link), elsewhere)
	if err == nil {
		err = os.Symlink(rel, link)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// B45: a repository shows nothing of what is elsewhere by links in the place
// of its files; the name of a file on the command line does, without a quote.
func TestFilesOutsideAreNotShown(t *testing.T) {
	for _, tt := range []struct {
		file, text, code string
		follow           bool
	}{
		{"workshop.yaml", "github.com: hunter2\n", "file-outside", false},
		{"workshop.yaml", "github.com: hunter2\n", "unknown-key", true},
		{"workers/one.md", "---\ngithub.com: [hunter2\n", "worker-outside", false},
		{"workers/result.json", "{\"type\": \"hunter2\"}", "worker-result-type", false},
		{".env", "A=hunter2\n", "env-outside", false},
	} {
		t.Run(tt.file, func(t *testing.T) {
			fsys := os.DirFS(linked(t, tt.file, tt.text))
			w, l := Load(t.Context(), fsys, "workshop.yaml", Options{FollowFile: tt.follow})
			found := false
			for _, d := range l {
				found = found || d.Code == tt.code
			}
			if w != nil || !found {
				t.Errorf("got %v, want %s", l, tt.code)
			}
			if got := text(t, fsys, l); strings.Contains(got, "hunter2") {
				t.Errorf("it is quoted:\n%s", got)
			}
		})
	}
	// A link that stays in the project is a file like any other.
	dir := linked(t, "workers/two.json", "{}")
	if err := os.Rename(filepath.Join(dir, "workshop.yaml"), filepath.Join(dir, "real.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("./real.yaml", filepath.Join(dir, "workshop.yaml")); err != nil {
		t.Fatal(err)
	}
	if w, l := Load(t.Context(), os.DirFS(dir), "workshop.yaml", Options{}); w == nil {
		t.Errorf("a link inside: %v", l)
	}
}
