package facts

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// worktrees makes PROJECT/wt, a linked worktree of PROJECT/repo, with the project's options.
type worktrees struct {
	*testing.T
	dir string
	o   Options
}

func newWorktrees(t *testing.T, mount string) *worktrees {
	t.Helper()
	_, err := exec.LookPath("git")
	testutil.Require(t, err == nil, "no git")
	dir, o := project(t, "    mounts: ["+mount+"]\n")
	w := &worktrees{t, dir, o}
	w.git("init", "-q", "-b", "main", "repo")
	w.git("-C", "repo", "commit", "-q", "--allow-empty", "-m", "one")
	w.git("-C", "repo", "worktree", "add", "-q", "../wt")
	return w
}

func (w *worktrees) at(name string) string { return filepath.Join(w.dir, name) }

func (w *worktrees) git(args ...string) {
	w.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "safe.directory=*"}, args...)...)
	cmd.Dir = w.dir
	cmd.Env = []string{"HOME=" + w.dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// linked returns what was found in the only source, by directory.
func (w *worktrees) linked() map[string]compose.LinkedGit {
	w.Helper()
	f, list := collect(w.T, w.o, false)
	if list.HasErrors() {
		w.Fatal(list)
	}
	out := map[string]compose.LinkedGit{}
	for _, sf := range f.Sources {
		for _, l := range sf.Linked {
			out[l.Dir] = l
		}
	}
	return out
}

// TestB08_LinkedWorktree: the repository of a linked worktree is found, and what stays
// read-only of it.
func TestB08_LinkedWorktree(t *testing.T) {
	w := newWorktrees(t, "./wt:/w")
	l := w.linked()["."]
	if l.Real != w.at("repo/.git") || l.Own != "worktrees/wt" || l.Unusable != "" || l.NotWritable != "" {
		t.Errorf("got %+v", l)
	}
	for _, p := range []string{"config", "hooks", "info", "objects/info", "worktrees", "worktrees/wt/commondir"} {
		if !slices.Contains(l.Pinned, p) {
			t.Errorf("%s is not pinned: %v", p, l.Pinned)
		}
	}
	for _, p := range []string{"objects", "refs", "logs", "worktrees/wt"} {
		if slices.Contains(l.Pinned, p) {
			t.Errorf("%s is pinned", p)
		}
	}
}

// TestB07_GitFileProvesNothing: a .git file is text of a repository or a worker. It gives
// a worker no directory that doesn't name the worktree back.
func TestB07_GitFileProvesNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		do    func(w *worktrees)
		want  string // of Unusable; empty: nothing is found
		other bool   // the .git file is rewritten by the case
	}{
		{"another repository's worktree", func(w *worktrees) {
			w.git("init", "-q", "private")
			w.git("-C", "private", "commit", "-q", "--allow-empty", "-m", "secret")
			w.git("-C", "private", "worktree", "add", "-q", "../x")
			w.names(w.at("private/.git/worktrees/x"))
		}, "which is the worktree of", true},
		{"another repository", func(w *worktrees) {
			w.git("init", "-q", "private")
			w.names(w.at("private/.git"))
		}, "core.worktree is not this directory", true},
		{"any directory", func(w *worktrees) { w.names("/etc") }, "no configuration that can be read", true},
		{"a forged own directory in the checkout", func(w *worktrees) {
			w.git("init", "-q", "private")
			write(w.T, w.dir, "wt/fake/worktrees/wt/commondir", w.at("private/.git")+"\n")
			write(w.T, w.dir, "wt/fake/worktrees/wt/gitdir", w.at("wt/.git")+"\n")
			write(w.T, w.dir, "wt/fake/worktrees/wt/HEAD", "ref: refs/heads/main\n")
			w.names(w.at("wt/fake/worktrees/wt"))
		}, "not in the worktrees of the repository", true},
		{"a forged own directory by a link", func(w *worktrees) {
			w.git("init", "-q", "private")
			write(w.T, w.dir, "wt/fake/wt/commondir", "../..\n")
			write(w.T, w.dir, "wt/fake/wt/gitdir", w.at("wt/.git")+"\n")
			symlink(w.T, w.at("wt/fake"), w.at("private/.git/worktrees"))
			w.names(w.at("private/.git/worktrees/wt"))
		}, "not in the worktrees of the repository", true},
		{"core.worktree of a forged submodule that borrows objects", func(w *worktrees) {
			w.git("init", "-q", "private")
			for _, name := range []string{"objects", "refs"} {
				symlink(w.T, w.at("private/.git/"+name), w.at("wt/fake-"+name))
			}
			write(w.T, w.dir, "wt/fake/config", "[core]\n\tworktree = "+w.at("wt")+"\n")
			write(w.T, w.dir, "wt/fake/HEAD", "ref: refs/heads/main\n")
			symlink(w.T, w.at("private/.git/objects"), w.at("wt/fake/objects"))
			symlink(w.T, w.at("private/.git/refs"), w.at("wt/fake/refs"))
			w.names("fake")
		}, "objects is not a directory", true},
		{"it is gone", func(w *worktrees) { w.names(w.at("gone")) }, "no such file", true},
		{"it was moved", func(w *worktrees) {
			if err := os.Rename(w.at("wt"), w.at("old")); err != nil {
				w.Fatal(err)
			}
			if err := exec.Command("cp", "-a", w.at("old"), w.at("wt")).Run(); err != nil {
				w.Fatal(err)
			}
			write(w.T, w.dir, "repo/.git/worktrees/wt/gitdir", w.at("old/.git")+"\n")
		}, "git worktree repair", false},
		{"no file of git", func(w *worktrees) { write(w.T, w.dir, "wt/.git", "hello") }, "", true},
		{"a pipe", func(w *worktrees) {
			if err := os.Remove(w.at("wt/.git")); err != nil {
				w.Fatal(err)
			}
			if err := syscall.Mkfifo(w.at("wt/.git"), 0o600); err != nil {
				w.Fatal(err)
			}
		}, "", true},
		{"a NUL", func(w *worktrees) { write(w.T, w.dir, "wt/.git", "gitdir: "+w.at("repo/.git/worktrees/wt")+"\x00x\n") }, "names no directory", true},
		{"a socket in the repository", func(w *worktrees) {
			if err := syscall.Mknod(w.at("repo/.git/fsmonitor--daemon.ipc"), syscall.S_IFSOCK|0o600, 0); err != nil {
				w.Fatal(err)
			}
		}, "sockets: allow", false},
		{"refused by B7", func(w *worktrees) { w.o.EngineDirs = []string{w.at("repo/.git")} }, "(B7)", false},
		{"it contains what is refused", func(w *worktrees) { w.o.DataRoot = w.at("repo/.git/objects") }, "(B7)", false},
		{"somebody else's", func(w *worktrees) {
			if err := os.Chown(w.at("repo/.git"), 4242, 4242); err != nil {
				w.Skip(err)
			}
		}, "belongs to uid 4242", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorktrees(t, "{source: ./wt, target: /w, mode: rw}")
			tt.do(w)
			if tt.name == "a pipe" {
				w.o.Workshop.Workers[0].Container.Mounts[0].AllowSockets = true
			}
			l, found := w.linked()["."]
			if found != (tt.want != "") || !strings.Contains(l.Unusable, tt.want) || found && l.Unusable == "" {
				t.Errorf("found %v: %q, want %q", found, l.Unusable, tt.want)
			}
		})
	}
}

// names makes the worktree's .git file name a directory.
func (w *worktrees) names(dir string) {
	w.Helper()
	write(w.T, w.dir, "wt/.git", "gitdir: "+dir+"\n")
}

// TestB08_RepositoryThatIsNotWritable: where hooks or config can't be held, the repository
// is read-only.
func TestB08_RepositoryThatIsNotWritable(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(w *worktrees)
		want string
	}{
		{"hooks is a link", func(w *worktrees) {
			w.must(os.Rename(w.at("repo/.git/hooks"), w.at("hooks")))
			symlink(w.T, w.at("hooks"), w.at("repo/.git/hooks"))
		}, "hooks in its repository"},
		{"no hooks", func(w *worktrees) { w.must(os.RemoveAll(w.at("repo/.git/hooks"))) }, "mkdir "},
		{"config is a link", func(w *worktrees) {
			w.must(os.Rename(w.at("repo/.git/config"), w.at("config")))
			symlink(w.T, w.at("config"), w.at("repo/.git/config"))
		}, "config in its repository"},
		{"config.worktree is a link", func(w *worktrees) {
			write(w.T, w.dir, "c", "")
			symlink(w.T, w.at("c"), w.at("repo/.git/worktrees/wt/config.worktree"))
		}, "config.worktree is not a regular file"},
		{"reftable", func(w *worktrees) { w.must(os.Mkdir(w.at("repo/.git/reftable"), 0o755)) }, "reftable"},
		{"a commondir", func(w *worktrees) { write(w.T, w.dir, "repo/.git/commondir", ".") }, "has a commondir"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorktrees(t, "{source: ./wt, target: /w, mode: rw, git: rw}")
			tt.do(w)
			if l := w.linked()["."]; l.Unusable != "" || !strings.Contains(l.NotWritable, tt.want) {
				t.Errorf("unusable %q, not writable %q, want %q", l.Unusable, l.NotWritable, tt.want)
			}
		})
	}
}

func (w *worktrees) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// TestLinkedSubmodules: a submodule is found by core.worktree, also in a linked worktree,
// whose own directory has its repository; the hooks of that are pinned (B8).
func TestLinkedSubmodules(t *testing.T) {
	w := newWorktrees(t, "{source: ./wt, target: /w, mode: rw, git: rw}")
	w.git("init", "-q", "lib")
	w.git("-C", "lib", "commit", "-q", "--allow-empty", "-m", "one")
	w.git("-C", "wt", "submodule", "--quiet", "add", w.at("lib"), "libs/x")
	all := w.linked()
	x := all["libs/x"]
	if x.Unusable != "" || x.Own != "" || x.Real != w.at("repo/.git/worktrees/wt/modules/libs/x") || x.Worktree == "" {
		t.Errorf("the submodule: %+v", x)
	}
	if top := all["."]; !slices.Contains(top.Pinned, "worktrees/wt/modules/libs/x/hooks") {
		t.Errorf("pinned of the worktree: %v", top.Pinned)
	}
}

// TestGitFilesAreBounded (B60).
func TestGitFilesAreBounded(t *testing.T) {
	w := newWorktrees(t, "./wt:/w")
	for i := range 3 * maxRepositories {
		write(t, w.dir, filepath.Join("wt", strings.Repeat("d", i+1), ".git"), "gitdir: "+strings.Repeat("/x", 4000))
	}
	if n := len(w.linked()); n != maxRepositories {
		t.Errorf("%d repositories are looked for", n)
	}
}
