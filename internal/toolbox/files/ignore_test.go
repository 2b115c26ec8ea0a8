//go:build linux

package files

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/tool"
)

// git runs the real one, without the configuration of this machine.
func git(t testing.TB, dir string, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+dir, "XDG_CONFIG_HOME="+dir)
	out, err := cmd.Output()
	if err != nil {
		if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 1 {
			t.Fatalf("git %v: %v", args, err)
		}
	}
	return string(out)
}

// tree writes files; a name that ends in a slash is a directory.
func tree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(p, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// untracked is what git itself would list.
func untracked(t testing.TB, dir string) []string {
	out := git(t, dir, "", "ls-files", "-z", "--others", "--exclude-standard")
	names := strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
	slices.Sort(names)
	return names
}

func listed(t testing.TB, dir string) []string {
	r, err := List(context.Background(), tool.ListFilesArgs{Path: dir, Glob: "**", Hidden: true, MaxEntries: tool.MaxEntries})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range r.Entries {
		p, err := filepath.Rel(resultPath(dir, -1), e.Path)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, p)
	}
	return names
}

var sample = map[string]string{
	"a": "", "b.log": "", "keep.log": "", "sub/b.log": "", "sub/deep/b.log": "", "sub/deep/c": "", "build/x": "", "sub/build/x": "", "src/build/y": "",
	"ab": "", "axb": "", "a b": "", "a ": "", "#x": "", "!x": "", "x/y/z/a": "", "x/a": "", "ax/y/b": "", "d-e": "", "d]e": "", "é": "", "n_modules/m/i.js": "",
	"dir/file": "", "dir/dir/file": "", `back\slash`: "", "Q": "", "q1": "", "[x]": "", "foo*": "", "tab\t": "",
}

func TestIgnoreIsGits(t *testing.T) {
	for name, ignore := range map[string]map[string]string{
		"plain":           {".gitignore": "*.log\n"},
		"again":           {".gitignore": "*.log\n!keep.log\n"},
		"directories":     {".gitignore": "build/\n"},
		"anchored":        {".gitignore": "/build\n/b.log\n"},
		"in the middle":   {".gitignore": "sub/build\nsub/*.log\n"},
		"deep":            {".gitignore": "**/build\nx/**/a\n"},
		"deep at the end": {".gitignore": "sub/**\n!sub/deep/\n"},
		"odd stars":       {".gitignore": "a**/b\nsub/deep/b**\n***\n!a*\n"},
		"one level":       {".gitignore": "*/file\nx/*/z\n"},
		"nested":          {".gitignore": "*.log\n", "sub/.gitignore": "!b.log\n/deep/c\n", "sub/deep/.gitignore": "*\n!c\n"},
		"below ignored":   {".gitignore": "sub/\n!sub/deep/c\n"},
		"all but":         {".gitignore": "/*\n!/sub\n/sub/*\n!/sub/deep\n"},
		"classes":         {".gitignore": "[a-b]\n[!a-z]\nd[]-]e\n[[:upper:]]\nq[[:digit:]]\n\\[x]\na[/]b\n[a\n[[:nope:]]\n"},
		"question":        {".gitignore": "?\na?b\n"},
		"blanks":          {".gitignore": "a \na\\ b\n  \n\n# b.log\n"},
		"escaped":         {".gitignore": "\\#x\n\\!x\nfoo\\*\nback\\\\slash\nq1\\\n"},
		"line ends":       {".gitignore": "*.log\r\nbuild/\r\nab\r"},
		"no end":          {".gitignore": "*.log"},
		"mark":            {".gitignore": "\uFEFF*.log\n"},
		"tab":             {".gitignore": "a\t\ntab\t\n"},
		"slashes":         {".gitignore": "/\n//a\ndir//\n./a\n../a\n!\n!/\n"},
		"exclude":         {".git/info/exclude": "*.log\nbuild\n", ".gitignore": "!keep.log\n"},
		"exclude is last": {".git/info/exclude": "!b.log\n", ".gitignore": "b.log\n"},
		"zero byte":       {".gitignore": "a\x00b\n"},
		"a link":          {".gitignore-target": "*.log\n"},
		"a directory":     {".gitignore/x": ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			git(t, dir, "", "init", "-q")
			tree(t, dir, sample)
			tree(t, dir, ignore)
			if name == "a link" {
				if err := os.Symlink(".gitignore-target", filepath.Join(dir, ".gitignore")); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := listed(t, dir), untracked(t, dir); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			// And each directory by itself, with the rules that stand above it.
			all, dirs := untracked(t, dir), map[string]bool{}
			for n := range sample {
				for n = filepath.Dir(n); n != "."; n = filepath.Dir(n) {
					dirs[n] = true
				}
			}
			out := git(t, dir, strings.Join(slices.Collect(maps.Keys(dirs)), "\x00")+"\x00", "check-ignore", "-z", "--stdin", "--no-index")
			for _, ignored := range strings.Split(out, "\x00") {
				delete(dirs, ignored) // who asks for it by name sees what is in it
			}
			for rel := range dirs {
				var want []string
				for _, n := range all {
					if in, ok := strings.CutPrefix(n, rel+"/"); ok {
						want = append(want, in)
					}
				}
				if got := listed(t, filepath.Join(dir, rel)); !slices.Equal(got, want) {
					t.Errorf("%s: got %q, want %q", rel, got, want)
				}
			}
		})
	}
}

func TestIgnoreOfAnotherRepository(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{".git/": "", ".gitignore": "*.log\n", "in/.git/": "", "in/a.log": "", "a.log": "", "b": ""})
	if got := listed(t, dir); !slices.Equal(got, []string{".gitignore", "b", "in/a.log"}) {
		t.Errorf("%q", got)
	}
}

func TestIgnoreWithoutGit(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	tree(t, dir, map[string]string{".gitignore": "*.log\n", "in/a.log": "", "in/b": ""})
	if got := listed(t, "in"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q", got)
	}
}

// FuzzIgnore compares our reading of two .gitignore files with git's own.
func FuzzIgnore(f *testing.F) {
	dir := f.TempDir()
	git(f, dir, "", "init", "-q")
	tree(f, dir, sample)
	paths := slices.Sorted(maps.Keys(sample))
	f.Add("*.log\n!keep.log\n", "b.log\n")
	f.Add("a**/b\n[!a-z]\n/sub/*\n!/sub/deep\n", "**/c\n")
	f.Add("[[:alpha:]-z]\nx/**/a/\n\\!x \n", "!*\n")
	f.Fuzz(func(t *testing.T, top, sub string) {
		if len(top)+len(sub) < 1<<10 {
			compareIgnore(t, dir, paths, top, sub)
		}
	})
}

// compareIgnore asks git and us about each path and the directories above it.
func compareIgnore(t *testing.T, dir string, paths []string, top, sub string) {
	t.Helper()
	tree(t, dir, map[string]string{".gitignore": top, "sub/.gitignore": sub})
	out := "\x00" + git(t, dir, strings.Join(paths, "\x00")+"\x00", "check-ignore", "-z", "--stdin", "--no-index")
	root, below := &scope{rules: parseIgnore([]byte(top))}, &scope{skip: len("sub/"), rules: parseIgnore([]byte(sub))}
	below.above = root
	for _, p := range paths {
		ignored := false
		for i := range len(p) + 1 { // directories first
			if i < len(p) && p[i] != '/' {
				continue
			}
			s := root
			if strings.HasPrefix(p[:i], "sub/") {
				s = below
			}
			ignored = ignored || s.ignored(p[:i], i < len(p))
		}
		if want := strings.Contains(out, "\x00"+p+"\x00"); ignored != want {
			t.Errorf("%q and %q: %s is ignored: %v, git says %v", top, sub, p, ignored, want)
		}
	}
}

// TestIgnoreRandom: patterns that are made of what means something, always the
// same ones.
func TestIgnoreRandom(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "", "init", "-q")
	tree(t, dir, sample)
	paths := slices.Sorted(maps.Keys(sample))
	pieces := []string{"*", "**", "?", "/", "/", "a", "b", "x", "sub", "deep", "dir", "file", "build", "[ab]", "[!a]", "[a-c", "]", "[[:alpha:]]", `\`, "!", " ", ".log", "-"}
	r := rand.New(rand.NewPCG(1, 3))
	file := func() string {
		var b strings.Builder
		for range 1 + r.IntN(3) {
			for range 1 + r.IntN(6) {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
	for range rounds {
		compareIgnore(t, dir, paths, file(), file())
	}
}

const rounds = 100
