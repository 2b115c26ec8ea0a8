//go:build linux

package facts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
)

// bareRepository makes what git takes for a git directory.
func bareRepository(t *testing.T, dir, name string) {
	t.Helper()
	for _, f := range []string{"HEAD", "objects/x", "refs/x", "hooks/x"} {
		write(t, dir, name+"/"+f, "")
	}
}

// B8: a git directory is one whatever its name is.
func TestGitDirectoriesAreHeld(t *testing.T) {
	held := func(git string) []string {
		t.Helper()
		dir, o := project(t, "    mounts: [{source: ./repo, target: /repo, mode: rw"+git+"}]\n")
		repo := filepath.Join(dir, "repo")
		bareRepository(t, repo, "cache/x")
		bareRepository(t, repo, "node_modules/x")
		bareRepository(t, repo, "mod/cache/vcs/"+strings.Repeat("0a", 32))
		bareRepository(t, repo, ".github/x")
		write(t, repo, "wt/HEAD", "")
		write(t, repo, "wt/commondir", "../cache/x")
		write(t, repo, "only/objects/x", "")
		write(t, repo, "only/refs/x", "")
		if err := chownAll(repo); err != nil {
			t.Fatal(err)
		}
		c, list := judge(t, o)
		if len(list) > 0 {
			t.Fatal(list)
		}
		if v := compose.Check(c); len(v) > 0 {
			t.Error(v)
		}
		var out []string
		for _, v := range c.Project.Services["one"].Volumes {
			if len(v.Target) > len("/repo/") && v.Target[:6] == "/repo/" {
				mode := "rw "
				if v.ReadOnly {
					mode = "ro "
				}
				out = append(out, mode+v.Target[6:])
			}
		}
		return out
	}
	want := []string{"ro .github", "rw cache", "ro cache/x", "ro wt"}
	if got := held(""); !slices.Equal(got, want) {
		t.Errorf("held: %q, want %q", got, want)
	}
	want = []string{"ro .github", "rw cache", "rw cache/x", "ro cache/x/hooks", "rw wt"}
	if got := held(", git: rw"); !slices.Equal(got, want) {
		t.Errorf("held with git: rw: %q, want %q", got, want)
	}
}

// B8: a source that is or lies inside a git directory takes `git: rw`.
func TestSourceIsAGitDirectory(t *testing.T) {
	for _, tt := range []struct {
		source, git string
		want        []string
	}{
		{"x", "", []string{"mount-protected"}},
		{"x/objects", "", []string{"mount-protected"}},
		{"x", ", git: rw", nil},
		{"x/hooks", ", git: rw", []string{"mount-protected"}},
		{"x/hooks/below", ", git: rw", []string{"mount-protected"}},
		{"x/hooks/x", ", git: rw", []string{"mount-protected"}},
		{"x/refs", ", git: rw", nil},
		{"linked", ", git: rw", []string{"mount-protected"}},
		{".git/modules/s/hooks", ", git: rw", []string{"mount-protected"}},
		{".git/hooks", ", git: rw", []string{"mount-protected"}},
		{"OUTSIDE/.git/hooks", ", outside_project: true", []string{"mount-protected"}},
		{"OUTSIDE/.git/info", ", outside_project: true", []string{"mount-protected"}},
		{"OUTSIDE/.git/info", ", outside_project: true, git: rw", nil},
		{"OUTSIDE/x/refs", ", outside_project: true", nil},
		{"OUTSIDE/x/hooks", ", outside_project: true", []string{"mount-protected"}},
	} {
		t.Run(tt.source+tt.git, func(t *testing.T) {
			outside, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			source := strings.Replace("./"+tt.source, "./OUTSIDE", outside, 1)
			dir, o := project(t, "    mounts: [{source: '"+source+"', target: /x, mode: rw"+tt.git+"}]\n")
			for _, dir := range []string{dir, outside} {
				for _, name := range []string{"x", ".git", ".git/modules/s"} {
					bareRepository(t, dir, name)
					write(t, dir, name+"/info/x", "")
					write(t, dir, name+"/hooks/below/x", "")
				}
				symlink(t, ".git/hooks", filepath.Join(dir, "linked"))
				if err := chownAll(dir); err != nil {
					t.Fatal(err)
				}
			}
			c, list := judge(t, o)
			if got := codes(list); !slices.Equal(got, tt.want) {
				t.Errorf("problems: %v", list)
			}
			if tt.source == "x" && tt.git != "" && !slices.Equal(c.Facts.Protected["./x"], []compose.Protected{{Path: "hooks", Kind: compose.GitHooks}}) {
				t.Errorf("held: %v", c.Facts.Protected)
			}
		})
	}
}

// B8: so does one in a project that is a bare repository.
func TestProjectIsAGitDirectory(t *testing.T) {
	for git, want := range map[string][]string{"hooks": {"mount-protected"}, "hooks, git: rw": {"mount-protected"}, "info": {"mount-protected"}, "info, git: rw": nil} {
		name, more, _ := strings.Cut(git, ",")
		if more != "" {
			more = "," + more
		}
		dir, o := project(t, "    mounts: [{source: ./"+name+", target: /x, mode: rw"+more+"}]\n")
		bareRepository(t, dir, ".")
		write(t, dir, "info/x", "")
		if err := chownAll(dir); err != nil {
			t.Fatal(err)
		}
		if _, list := judge(t, o); !slices.Equal(codes(list), want) {
			t.Errorf("%s: %v, want %v", git, list, want)
		}
	}
}

// B60: what is held is bounded, with the directories on the way.
func TestTooManyProtected(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    int
		path string
	}{
		{"directories", maxProtected + 1, "a%d/.claude"},
		{"directories on the way", 40, "a%d/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x/y/z/.claude"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, o := project(t, "    mounts: [{source: ./repo, target: /repo, mode: rw}]\n")
			for i := range tt.n {
				if err := os.MkdirAll(filepath.Join(dir, "repo", fmt.Sprintf(tt.path, i)), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := chownAll(filepath.Join(dir, "repo")); err != nil {
				t.Fatal(err)
			}
			_, list := judge(t, o)
			if !slices.Contains(codes(list), "mount-too-many-protected") {
				t.Errorf("problems: %v", list)
			}
		})
	}
}

// B8, B60: engines are told of mounts in JSON, where a name that is not UTF-8 is
// another one: of a directory that isn't there, so that nothing came up, or of one
// that a worker made beside it, so that the first wasn't held.
func TestNamesThatAreNotUTF8(t *testing.T) {
	dir, o := project(t, "    mounts: [{source: ./out, target: /out, mode: rw}]\n")
	out := filepath.Join(dir, "out")
	if err := os.MkdirAll(filepath.Join(out, "\xff"), 0o755); err != nil {
		t.Skipf("this file system has no such names: %v", err)
	}
	for _, name := range []string{"\xff", "\ufffd"} {
		bareRepository(t, out, name+"/.git")
		write(t, out, name+"/.vscode/x", "")
		write(t, out, name+"/.envrc", name)
	}
	if err := chownAll(out); err != nil {
		t.Fatal(err)
	}
	c, list := judge(t, o)
	if !slices.Equal(codes(list), []string{CodeNotChecked}) || !strings.Contains(list[0].Summary, "not UTF-8") {
		t.Errorf("up: %v", list)
	}
	want := []compose.Protected{{Path: "\ufffd/.git", Kind: compose.GitDir}, {Path: "\ufffd/.git/hooks", Kind: compose.GitHooks}, {Path: "\ufffd/.vscode"}}
	if !slices.Equal(c.Facts.Protected["./out"], want) {
		t.Errorf("held: %+v", c.Facts.Protected["./out"])
	}

	before, err := TakeSnapshot(t.Context(), c, dir)
	if err != nil {
		t.Fatal(err)
	}
	kept := t.TempDir()
	if err := before.Save(kept); err != nil {
		t.Fatal(err)
	}
	if before, err = LoadSnapshot(kept); err != nil {
		t.Fatal(err)
	}
	write(t, out, "\ufffd/.envrc", "\xff")
	after, err := TakeSnapshot(t.Context(), c, dir)
	if err != nil {
		t.Fatal(err)
	}
	changes := []Change{{Path: filepath.Join(out, "\ufffd/.envrc"), Kind: Changed}}
	if got := before.Compare(after); !slices.Equal(got, changes) {
		t.Errorf("changes: %q, want %q", got, changes)
	}
}
