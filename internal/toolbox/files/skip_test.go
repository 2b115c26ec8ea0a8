//go:build linux

package files

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/tool"
)

// TestSkips: without a .gitignore, dependencies and caches are skipped and named,
// and found by their path, in a glob that names them, and with ignored.
func TestSkips(t *testing.T) {
	t.Chdir(t.TempDir())
	tree(t, ".", map[string]string{
		"src/a.js": "hit", "node_modules/x/a.js": "hit", "node_modules/x/node_modules/y/a.js": "hit", "web/node_modules/z/a.js": "hit",
		"target/CACHEDIR.TAG": "", "target/debug/a.rs": "hit", "env/pyvenv.cfg": "", "env/lib/a.py": "hit",
		"vendor/modules.txt": "", "vendor/x/a.go": "hit", "other/modules.txt": "", "other/a.go": "hit", "build/a.c": "hit",
		".venv/lib/a.py": "hit", ".github/a.yml": "hit", "ignored/node_modules/a.js": "hit", ".gitignore": "/ignored/node_modules\n", ".git/a": "hit",
	})
	sources := []string{"build/a.c", "other/a.go", "src/a.js"}
	for _, c := range []struct {
		name    string
		args    tool.SearchFilesArgs
		want    []string
		skipped string
	}{
		{"all", tool.SearchFilesArgs{}, sources, "env, ignored/node_modules, node_modules and 3 more"},
		{"hidden", tool.SearchFilesArgs{Hidden: true}, append([]string{".github/a.yml"}, sources...), ".venv, env, ignored/node_modules and 4 more"},
		{"none on the way", tool.SearchFilesArgs{Path: "src"}, []string{"a.js"}, ""},
		{"by path", tool.SearchFilesArgs{Path: "node_modules"}, []string{"x/a.js"}, "x/node_modules"},
		{"by path to a marked one", tool.SearchFilesArgs{Path: "target"}, []string{"debug/a.rs"}, ""},
		{"by glob", tool.SearchFilesArgs{Glob: "node_modules/**/*.js"}, []string{"node_modules/x/a.js", "node_modules/x/node_modules/y/a.js"}, ""},
		{"by glob at any depth", tool.SearchFilesArgs{Glob: "**/node_modules/z/*"}, []string{"web/node_modules/z/a.js"}, "env, target, vendor"},
		{"by glob to a marked one", tool.SearchFilesArgs{Glob: "target/**"}, []string{"target/debug/a.rs"}, ""},
		{"a glob beside them", tool.SearchFilesArgs{Glob: "src/**"}, []string{"src/a.js"}, ""},
		{"ignored", tool.SearchFilesArgs{Ignored: true}, []string{"build/a.c", "env/lib/a.py", "ignored/node_modules/a.js", "node_modules/x/a.js", "node_modules/x/node_modules/y/a.js", "other/a.go", "src/a.js", "target/debug/a.rs", "vendor/x/a.go", "web/node_modules/z/a.js"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.args.Pattern = "hit"
			r, err := Search(ctx, c.args)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range r.Matches {
				got = append(got, m.Path)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			want := ""
			if c.skipped != "" {
				want = "skipped as dependencies or caches: " + c.skipped + "; to look into one, give it as path, or set ignored for all"
			}
			if r.Note != want {
				t.Errorf("the note is %q, want %q", r.Note, want)
			}
		})
	}
	r, err := List(ctx, tool.ListFilesArgs{Glob: "**/*.js"})
	if err != nil || len(r.Entries) != 1 || !strings.Contains(r.Note, "node_modules") {
		t.Errorf("a list: %+v, %v", r, err)
	}
	if r, err = List(ctx, tool.ListFilesArgs{}); err != nil || r.Note != "" || len(r.Entries) != 9 {
		t.Errorf("a list of the directory itself names them as its entries: %+v, %v", r, err)
	}
}
