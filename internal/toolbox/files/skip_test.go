//go:build linux

package files

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/tool"
)

// howToInclude ends a note about what was skipped.
const howToInclude = "; to look into one, give it as path or name it in glob, or set ignored for all"

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
		{"none on the way", tool.SearchFilesArgs{Path: "src"}, []string{"src/a.js"}, ""},
		{"by path", tool.SearchFilesArgs{Path: "node_modules"}, []string{"node_modules/x/a.js"}, "node_modules/x/node_modules"},
		{"by path to a marked one", tool.SearchFilesArgs{Path: "target"}, []string{"target/debug/a.rs"}, ""},
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
				want = "skipped as dependencies or caches: " + c.skipped + howToInclude
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

// What a .gitignore leaves out is counted and named, and a glob reaches a directory
// that it names, whichever way the .gitignore is about that.
func TestIgnoredIsTold(t *testing.T) {
	t.Chdir(t.TempDir())
	tree(t, ".", map[string]string{
		".gitignore": "/dist\nbuild/*\n/gen/**\n*.log\n!keep.log\nnode_modules/\n", ".git/": "",
		"a.js": "", "a.log": "", "keep.log": "", "dist/a.js": "", "dist/sub/b.js": "", "dist/c.log": "", "build/a.js": "", "build/sub/b.js": "", "gen/a.js": "", "gen/sub/b.js": "",
		"src/a.js": "", "src/a.log": "", "src/gen/a.js": "", "node_modules/x/a.js": "", "env/.gitignore": "*\n", "env/a.js": "",
	})
	for _, c := range []struct {
		name  string
		args  tool.ListFilesArgs
		want  []string
		told  string
		after string // what else the note begins with
	}{
		{name: "one directory", want: []string{"a.js", "build", "env", "gen", "keep.log", "src"}, told: "a.log, dist, node_modules"},
		{name: "all", args: tool.ListFilesArgs{Glob: "**"}, want: []string{"a.js", "keep.log", "src/a.js", "src/gen/a.js"}, after: "skipped as dependencies or caches: node_modules; ",
			told: "a.log, build/a.js, build/sub and 5 more"},
		{name: "only what the glob selects", args: tool.ListFilesArgs{Glob: "*.js"}, want: []string{"a.js"}},
		{name: "a directory", args: tool.ListFilesArgs{Glob: "dist/**/*.js"}, want: []string{"dist/a.js", "dist/sub/b.js"}},
		{name: "all in a directory", args: tool.ListFilesArgs{Glob: "dist/*"}, want: []string{"dist/a.js", "dist/c.log"}},
		{name: "a directory below", args: tool.ListFilesArgs{Glob: "dist/sub/*"}, want: []string{"dist/sub/b.js"}},
		{name: "its content", args: tool.ListFilesArgs{Glob: "build/**"}, want: []string{"build/a.js", "build/sub/b.js"}},
		{name: "its content, below", args: tool.ListFilesArgs{Glob: "gen/sub/*"}, want: []string{"gen/sub/b.js"}},
		{name: "by its own file", args: tool.ListFilesArgs{Glob: "env/*.js"}, want: []string{"env/a.js"}},
		{name: "dependencies", args: tool.ListFilesArgs{Glob: "node_modules/**/*.js"}, want: []string{"node_modules/x/a.js"}},
		{name: "dependencies at any depth", args: tool.ListFilesArgs{Glob: "**/node_modules/x/*.js"}, want: []string{"node_modules/x/a.js"}, told: "build/sub, dist, gen/sub"},
		{name: "a directory that isn't ignored", args: tool.ListFilesArgs{Glob: "src/*"}, want: []string{"src/a.js"}, told: "src/a.log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := List(ctx, c.args)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range r.Entries {
				got = append(got, e.Path)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			want := ""
			if c.told != "" {
				want = c.after + "skipped by .gitignore: " + c.told + howToInclude
			}
			if r.Note != want {
				t.Errorf("the note is %q, want %q", r.Note, want)
			}
		})
	}
}

// What a note names can be looked into by its path, however deep: the rules that
// leave it out don't hold there, and those inside of it do.
func TestIgnoredByPath(t *testing.T) {
	t.Chdir(t.TempDir())
	tree(t, ".", map[string]string{
		".gitignore": "/dist\nbuild/*\n*.log\n", ".git/": "", ".cache/.gitignore": "*\n", ".cache/mod/a/x.go": "hit", ".cache/mod/y.go": "hit",
		"dist/.gitignore": "*.tmp\n", "dist/a.js": "hit", "dist/a.tmp": "hit", "dist/sub/b.tmp": "hit", "dist/sub/b.log": "hit",
		"build/out/a.js": "hit", "src/a.js": "hit", "src/a.log": "hit",
	})
	for _, c := range []struct {
		path string
		want []string
		told string
	}{
		{".cache", nil, ".cache/mod"},
		{".cache/mod", []string{".cache/mod/a/x.go", ".cache/mod/y.go"}, ""},
		{".cache/mod/a", []string{".cache/mod/a/x.go"}, ""},
		{"dist", []string{"dist/a.js", "dist/sub/b.log"}, "dist/a.tmp, dist/sub/b.tmp"},
		{"dist/sub", []string{"dist/sub/b.log"}, "dist/sub/b.tmp"},
		{"build", nil, "build/out"},
		{"build/out", []string{"build/out/a.js"}, ""},
		{"src", []string{"src/a.js"}, "src/a.log"},
	} {
		t.Run(c.path, func(t *testing.T) {
			found, err := Search(ctx, tool.SearchFilesArgs{Path: c.path, Pattern: "hit"})
			if err != nil {
				t.Fatal(err)
			}
			listed, err := List(ctx, tool.ListFilesArgs{Path: c.path, Glob: "**"})
			if err != nil {
				t.Fatal(err)
			}
			var matches, entries []string
			for _, m := range found.Matches {
				matches = append(matches, m.Path)
			}
			for _, e := range listed.Entries {
				entries = append(entries, e.Path)
			}
			want := ""
			if c.told != "" {
				want = "skipped by .gitignore: " + c.told + howToInclude
			}
			if !slices.Equal(matches, c.want) || !slices.Equal(entries, c.want) || found.Note != want || listed.Note != want {
				t.Errorf("found %q (%s), listed %q (%s), want %q (%s)", matches, found.Note, entries, listed.Note, c.want, want)
			}
		})
	}
}
