package facts

import (
	"bytes"
	"context"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// gitCase is a repository of the host's user below a writable mount, and what a
// worker does to it.
type gitCase struct {
	*testing.T
	dir     string // the mount's source
	home    string
	witness string // made by what the worker planted, if git runs it
}

// evil is configuration by which `git status` runs a command.
func (c *gitCase) evil(more string) string {
	return "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch " + c.witness + "; false\"\n" + more
}

// script is a program that does the same.
func (c *gitCase) script() string { return "#!/bin/sh\ntouch " + c.witness + "\n" }

func (c *gitCase) put(name, text string) {
	c.Helper()
	write(c.T, c.dir, name, text)
	if err := os.Chmod(filepath.Join(c.dir, name), 0o755); err != nil {
		c.Fatal(err)
	}
}

func (c *gitCase) mkdir(names ...string) {
	c.Helper()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(c.dir, name), 0o755); err != nil {
			c.Fatal(err)
		}
	}
}

func (c *gitCase) link(to, name string) { symlink(c.T, to, filepath.Join(c.dir, name)) }

func (c *gitCase) remove(name string) {
	c.Helper()
	if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
		c.Fatal(err)
	}
}

// hookEntry is an entry by which git writes a hook.
func (c *gitCase) hookEntry() entry {
	c.put("hook", c.script())
	id, err := c.run("hash-object", "-w", "hook")
	if err != nil {
		c.Fatal(id)
	}
	return entry{path: ".git/hooks/post-checkout", mode: 0o100755, id: strings.TrimSpace(id)}
}

// putIndex writes an index.
func (c *gitCase) putIndex(name string, entries ...entry) []byte {
	c.Helper()
	data := makeIndex(c, 20, entries)
	c.put(name, string(data))
	return data
}

// bare makes the least that git takes for a git directory.
func (c *gitCase) bare(name, head, config string) {
	c.mkdir(name+"/objects", name+"/refs")
	if head != "" {
		c.put(name+"/HEAD", head)
	}
	c.put(name+"/config", config)
}

// run is the host's user with git; what it says doesn't matter.
func (c *gitCase) run(args ...string) (string, error) {
	c.Helper()
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=*", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = c.dir
	cmd.Env = []string{
		"HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_SEQUENCE_EDITOR=sed -i 1ibreak", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
		"GIT_ALLOW_PROTOCOL=file",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *gitCase) git(args ...string) {
	c.Helper()
	if out, err := c.run(args...); err != nil {
		c.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// snapshot is that of a project whose worker writes to the sources.
func (c *gitCase) snapshot(sources []string) Snapshot {
	c.Helper()
	var service types.ServiceConfig
	for _, s := range sources {
		service.Volumes = append(service.Volumes, types.ServiceVolumeConfig{Type: types.VolumeTypeBind, Source: filepath.Join(c.dir, s), Target: "/w" + s})
	}
	s, err := TakeSnapshot(context.Background(), &compose.Compiled{
		Roles: map[string]compose.Role{"w": compose.RoleWorker}, Facts: &compose.Facts{ProjectDir: c.dir},
		Project: &types.Project{Services: types.Services{"w": service}},
	}, c.home)
	if err != nil {
		c.Fatal(err)
	}
	return s
}

const main = "ref: refs/heads/main\n"

// gitTests are ways to have git run a worker's command on the host.
var gitTests = []struct {
	name    string
	mounts  []string // writable; none: all of the directory
	before  func(c *gitCase)
	attack  func(c *gitCase)
	victim  []string
	changed string // must be named
}{
	{
		name:   "bare repository",
		attack: func(c *gitCase) { c.bare("a/cache", main, c.evil("\tworktree = ..\n")) },
		victim: []string{"-C", "a/cache", "status"}, changed: "new a/cache",
	},
	{
		name: "bare repository, HEAD is a symlink",
		attack: func(c *gitCase) {
			c.bare("a/cache", "", c.evil("\tworktree = ..\n"))
			c.link("refs/heads/main", "a/cache/HEAD")
		},
		victim: []string{"-C", "a/cache", "status"}, changed: "new a/cache",
	},
	{
		name:   "bare repository, HEAD is detached",
		attack: func(c *gitCase) { c.bare("a/cache", strings.Repeat("1", 40)+"\n", c.evil("\tworktree = ..\n")) },
		victim: []string{"-C", "a/cache", "status"}, changed: "new a/cache",
	},
	{
		name: "bare repository of links and files",
		attack: func(c *gitCase) {
			c.put("a/cache/HEAD", main)
			c.put("a/cache/refs", "")
			c.link("../..", "a/cache/objects")
			c.put("a/cache/config", c.evil("\tworktree = ..\n"))
		},
		victim: []string{"-C", "a/cache", "status"}, changed: "new a/cache",
	},
	{
		name:   "the mount itself",
		mounts: []string{"src"},
		before: func(c *gitCase) { c.put("src/config/x", "") },
		attack: func(c *gitCase) { c.remove("src/config"); c.bare("src", main, c.evil("\tworktree = ..\n")) },
		victim: []string{"-C", "src", "status"}, changed: "new src",
	},
	{
		name:   "bare repository that was there",
		before: func(c *gitCase) { c.git("init", "-q", "--bare", "b/cache.x") },
		attack: func(c *gitCase) { c.put("b/cache.x/config", c.evil("\tworktree = ..\n")) },
		victim: []string{"-C", "b/cache.x", "status"}, changed: "changed b/cache.x/config",
	},
	{
		name:   "a rename makes the directory",
		before: func(c *gitCase) { c.bare("a/cache", "", c.evil("\tworktree = ..\n")); c.put("a/cache/head", main) },
		attack: func(c *gitCase) {
			if err := os.Rename(filepath.Join(c.dir, "a/cache/head"), filepath.Join(c.dir, "a/cache/HEAD")); err != nil {
				c.Fatal(err)
			}
		},
		victim: []string{"-C", "a/cache", "status"}, changed: "new a/cache",
	},
	{
		name: "commondir of a bare repository",
		before: func(c *gitCase) {
			c.put("a/HEAD", main)
			c.put("a/commondir", "../b")
			c.bare("b", "", "")
			c.put("wt/.git", "gitdir: ../a")
		},
		attack: func(c *gitCase) { c.put("b/config", c.evil("")) },
		victim: []string{"-C", "wt", "status"}, changed: "changed b/config",
	},
	{
		name:   "commondir in .git",
		attack: func(c *gitCase) { c.bare("x", "", c.evil("")); c.put(".git/commondir", "../x") },
		victim: []string{"status"}, changed: "new .git/commondir",
	},
	{
		name:   "commondir of a worktree",
		before: func(c *gitCase) { c.git("worktree", "add", "-q", "wt") },
		attack: func(c *gitCase) { c.bare("x", "", c.evil("")); c.put(".git/worktrees/wt/commondir", "../../../x") },
		victim: []string{"-C", "wt", "status"}, changed: "changed .git/worktrees/wt/commondir",
	},
	{
		name: "config.worktree",
		before: func(c *gitCase) {
			c.git("worktree", "add", "-q", "wt")
			c.git("config", "extensions.worktreeConfig", "true")
		},
		attack: func(c *gitCase) { c.put(".git/worktrees/wt/config.worktree", c.evil("")) },
		victim: []string{"-C", "wt", "status"}, changed: "new .git/worktrees/wt/config.worktree",
	},
	{
		name:   ".git file of a worktree",
		before: func(c *gitCase) { c.git("worktree", "add", "-q", "wt") },
		attack: func(c *gitCase) { c.bare("x", main, c.evil("")); c.put("wt/.git", "gitdir: ../x\n") },
		victim: []string{"-C", "wt", "status"}, changed: "changed wt/.git",
	},
	{
		name:   "new .git file",
		attack: func(c *gitCase) { c.bare("x", main, c.evil("")); c.put("a/.git", "gitdir: ../x\n") },
		victim: []string{"-C", "a", "status"}, changed: "new a/.git",
	},
	{
		name:   ".git is a link",
		attack: func(c *gitCase) { c.bare("x", main, c.evil("")); c.mkdir("a"); c.link("../x", "a/.git") },
		victim: []string{"-C", "a", "status"}, changed: "new a/.git",
	},
	submodule("x/refs"), submodule("x/objects"), submodule("logs"), submodule("x/lfs"),
	{
		name: "submodule below another's refs",
		before: func(c *gitCase) {
			c.git("init", "-q", "--bare", ".git/modules/x")
			c.bare(".git/modules/x/refs/y", main, "[core]\n\tworktree = ../../../../../a\n")
			c.put("a/.git", "gitdir: ../.git/modules/x/refs/y\n")
		},
		attack: func(c *gitCase) { c.put(".git/modules/x/refs/y/config", c.evil("\tworktree = ../../../../../a\n")) },
		victim: []string{"-C", "a", "status"}, changed: "changed .git/modules/x/refs/y/config",
	},
	{
		name: "submodule in installed packages",
		before: func(c *gitCase) {
			c.git("init", "-q", "node_modules/p")
			c.git("-C", "node_modules/p", "commit", "-q", "--allow-empty", "-m", "x")
			c.git("add", "-f", "node_modules/p")
		},
		attack: func(c *gitCase) { c.put("node_modules/p/.git/config", c.evil("")) },
		victim: []string{"status"}, changed: "changed node_modules/p/.git/config",
	},
	{
		name:   "included configuration",
		before: func(c *gitCase) { c.git("config", "include.path", "../team.conf"); c.put("team.conf", "") },
		attack: func(c *gitCase) { c.put("team.conf", c.evil("")) },
		victim: []string{"status"}, changed: "changed team.conf",
	},
	{
		name:   "included configuration that wasn't there",
		before: func(c *gitCase) { c.git("config", "include.path", "../team.conf") },
		attack: func(c *gitCase) { c.put("team.conf", c.evil("")) },
		victim: []string{"status"}, changed: "new team.conf",
	},
	{
		name: "included under a condition, by another, with odd spelling",
		before: func(c *gitCase) {
			c.put(".git/config", "[includeIf \"gitdir:**/.git\"] Path = \"../te\\\nam\".conf ; a comment\n")
			c.put("team.conf", "[include]\n\tpath = deep/more\n")
			c.put("deep/more", "")
		},
		attack: func(c *gitCase) { c.put("deep/more", c.evil("")) },
		victim: []string{"status"}, changed: "changed deep/more",
	},
	{
		name:   "hooks of the tree",
		before: func(c *gitCase) { c.git("config", "core.hooksPath", ".githooks") },
		attack: func(c *gitCase) { c.put(".githooks/pre-commit", c.script()) },
		victim: []string{"commit", "-q", "--allow-empty", "-m", "x"}, changed: "new .githooks/pre-commit",
	},
	{
		name: "what a hook of the tree calls",
		before: func(c *gitCase) {
			c.git("config", "core.hooksPath", ".githooks")
			c.put(".githooks/pre-commit", "#!/bin/sh\n. .githooks/lib/all\n")
			c.put(".githooks/lib/all", "")
		},
		attack: func(c *gitCase) { c.put(".githooks/lib/all", c.script()) },
		victim: []string{"commit", "-q", "--allow-empty", "-m", "x"}, changed: "changed .githooks/lib/all",
	},
	{
		name: "hooks by a link",
		before: func(c *gitCase) {
			c.remove(".git/hooks")
			c.link("../tools/hooks", ".git/hooks")
			c.put("tools/hooks/pre-commit", "#!/bin/sh\n")
		},
		attack: func(c *gitCase) { c.put("tools/hooks/pre-commit", c.script()) },
		victim: []string{"commit", "-q", "--allow-empty", "-m", "x"}, changed: "changed tools/hooks/pre-commit",
	},
	{
		name:   "hooks of the tree, by the user's configuration",
		before: func(c *gitCase) { c.git("config", "--global", "core.hooksPath", "githooks") },
		attack: func(c *gitCase) { c.put("githooks/pre-commit", c.script()) },
		victim: []string{"commit", "-q", "--allow-empty", "-m", "x"}, changed: "new githooks/pre-commit",
	},
	{
		name:   "hooks of a repository around the mount",
		mounts: []string{"src"},
		before: func(c *gitCase) { c.mkdir("src"); c.git("config", "core.hooksPath", "src/hooks") },
		attack: func(c *gitCase) { c.put("src/hooks/pre-commit", c.script()) },
		victim: []string{"commit", "-q", "--allow-empty", "-m", "x"}, changed: "new src/hooks/pre-commit",
	},
	{
		name:   "hooks of a worktree that is mounted alone",
		mounts: []string{"wt"},
		before: func(c *gitCase) { c.git("worktree", "add", "-q", "wt"); c.git("config", "core.hooksPath", "hooks") },
		attack: func(c *gitCase) { c.put("wt/hooks/pre-commit", c.script()) },
		victim: []string{"-C", "wt", "commit", "-q", "--allow-empty", "-m", "x"}, changed: "new wt/hooks/pre-commit",
	},
	{
		name: "a program of the tree that configuration names",
		before: func(c *gitCase) {
			c.put("tools/monitor", "#!/bin/sh\n")
			c.git("config", "core.fsmonitor", "sh tools/monitor; false")
		},
		attack: func(c *gitCase) { c.put("tools/monitor", c.script()) },
		victim: []string{"status"}, changed: "changed tools/monitor",
	},
	{
		name: "a program of the tree by the top of it",
		before: func(c *gitCase) {
			c.put("tools/monitor", "#!/bin/sh\n")
			c.git("config", "core.fsmonitor", "$(git rev-parse --show-toplevel)/tools/monitor; false")
		},
		attack: func(c *gitCase) { c.put("tools/monitor", c.script()) },
		victim: []string{"status"}, changed: "changed tools/monitor",
	},
	{
		name: "strategy of an unfinished rebase",
		before: func(c *gitCase) {
			c.put("x", "1")
			c.git("add", "x")
			c.git("commit", "-q", "-m", "third")
			c.git("rebase", "-q", "-i", "HEAD~2")
		},
		attack: func(c *gitCase) {
			c.put("git-merge-a/b", c.script())
			c.put(".git/rebase-merge/strategy", "a/b\n")
			todo, _ := c.run("log", "-1", "--format=pick %H", "main")
			c.put(".git/rebase-merge/git-rebase-todo", todo+todo)
		},
		victim: []string{"rebase", "--continue"}, changed: "new .git/rebase-merge/strategy",
	},
	{
		name:   "list of an unfinished rebase",
		before: func(c *gitCase) { c.git("rebase", "-q", "-i", "HEAD~1") },
		attack: func(c *gitCase) { c.put(".git/rebase-merge/git-rebase-todo", "exec touch "+c.witness+"\n") },
		victim: []string{"rebase", "--continue"}, changed: "changed .git/rebase-merge/git-rebase-todo",
	},
	{
		name:   "attributes, in a mount of their directory",
		mounts: []string{".git/info"},
		before: func(c *gitCase) { c.mkdir(".git/info"); c.git("config", "filter.x.clean", "touch "+c.witness+"; cat") },
		attack: func(c *gitCase) { c.put(".git/info/attributes", "* filter=x\n"); c.put("f", "") },
		victim: []string{"add", "f"}, changed: "new .git/info/attributes",
	},
	{
		name:   "list of an unfinished rebase, in a mount of its directory",
		mounts: []string{".git/rebase-merge"},
		before: func(c *gitCase) { c.git("rebase", "-q", "-i", "HEAD~1") },
		attack: func(c *gitCase) { c.put(".git/rebase-merge/git-rebase-todo", "exec touch "+c.witness+"\n") },
		victim: []string{"rebase", "--continue"}, changed: "changed .git/rebase-merge/git-rebase-todo",
	},
	{
		name:   "a log that leads out, in a mount of its directory",
		mounts: []string{".git/logs"},
		attack: func(c *gitCase) { c.remove(".git/logs/HEAD"); c.link(c.witness, ".git/logs/HEAD") },
		victim: []string{"commit", "-q", "--allow-empty", "-m", "x"}, changed: "new .git/logs/HEAD",
	},
	{
		name:   "a program that configuration names, of a bare repository around the mount",
		mounts: []string{"a/cache/tools"},
		before: func(c *gitCase) {
			c.bare("a/cache", main, "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = sh a/cache/tools/x; false\n\tworktree = ../..\n")
			c.put("a/cache/tools/x", "")
			c.git("--git-dir=a/cache", "config", "core.fsmonitor", "sh "+c.dir+"/a/cache/tools/x; false")
		},
		attack: func(c *gitCase) { c.put("a/cache/tools/x", c.script()) },
		victim: []string{"--git-dir=a/cache", "status"}, changed: "changed a/cache/tools/x",
	},
	{
		name:   "an entry of the index",
		attack: func(c *gitCase) { c.putIndex(".git/index", c.hookEntry()) },
		victim: []string{"checkout", "."}, changed: "not fully checked .git/index",
	},
	{
		name: "an entry of the index that others share",
		attack: func(c *gitCase) {
			c.git("config", "splitIndex.maxPercentChange", "100")
			shared := c.putIndex(".git/shared", c.hookEntry())
			name := bytes.Repeat([]byte{0xab}, 20)
			c.put(".git/sharedindex."+hex.EncodeToString(name), string(shared[:len(shared)-20])+string(name))
			none := numbers(0, 1, 0, 0, 0) // a compressed bitmap
			c.put(".git/index", string(makeIndex(c, 20, nil, part("link", slices.Concat(name, none, none)...))))
		},
		victim: []string{"checkout", "."}, changed: "not fully checked .git/sharedindex." + strings.Repeat("ab", 20),
	},
	{
		name:   "an entry of a worktree's index",
		before: func(c *gitCase) { c.git("worktree", "add", "-q", "wt") },
		attack: func(c *gitCase) {
			e := c.hookEntry()
			e.path = "../.git/hooks/post-checkout"
			c.putIndex(".git/worktrees/wt/index", e)
		},
		victim: []string{"-C", "wt", "checkout", "."}, changed: "not fully checked .git/worktrees/wt/index",
	},
	{
		name:   "a log that leads out",
		attack: func(c *gitCase) { c.remove(".git/logs/HEAD"); c.link(c.witness, ".git/logs/HEAD") },
		victim: []string{"commit", "-q", "--allow-empty", "-m", "x"}, changed: "new .git/logs/HEAD",
	},
	{
		name:   "a message that leads out",
		attack: func(c *gitCase) { c.remove(".git/COMMIT_EDITMSG"); c.link(c.witness, ".git/COMMIT_EDITMSG") },
		victim: []string{"commit", "-q", "--allow-empty", "-m", "x"}, changed: "new .git/COMMIT_EDITMSG",
	},
	{
		name:   "a log that leads out by another link, which wasn't there",
		before: func(c *gitCase) { c.remove(".git/logs/HEAD"); c.link("../../log", ".git/logs/HEAD") },
		attack: func(c *gitCase) { c.link(c.witness, "log") },
		victim: []string{"commit", "-q", "--allow-empty", "-m", "x"}, changed: "changed .git/logs/HEAD",
	},
	{
		name:   "logs of a bare repository that lead out",
		before: func(c *gitCase) { c.git("init", "-q", "--bare", "a/cache") },
		attack: func(c *gitCase) { c.link(c.witness, "a/cache/COMMIT_EDITMSG") },
		victim: []string{"--git-dir=a/cache", "--work-tree=.", "commit", "-q", "--allow-empty", "-m", "x"}, changed: "new a/cache/COMMIT_EDITMSG",
	},
	{
		name:   "new hook",
		before: func(c *gitCase) { c.remove(".git/hooks") },
		attack: func(c *gitCase) { c.put(".git/hooks/pre-commit", c.script()) },
		victim: []string{"commit", "-q", "--allow-empty", "-m", "x"}, changed: "new .git/hooks/pre-commit",
	},
}

// submodule is the attack on a submodule's own configuration.
func submodule(name string) (tt struct {
	name    string
	mounts  []string
	before  func(c *gitCase)
	attack  func(c *gitCase)
	victim  []string
	changed string
}) {
	tt.name = "submodule " + name
	tt.before = func(c *gitCase) { c.git("submodule", "add", "-q", "--name", name, c.dir, "sub") }
	tt.attack = func(c *gitCase) {
		c.put(".git/modules/"+name+"/config", c.evil("\tworktree = "+strings.Repeat("../", strings.Count(name, "/")+3)+"sub\n"))
	}
	tt.victim, tt.changed = []string{"-C", "sub", "status"}, "changed .git/modules/"+name+"/config"
	return tt
}

// B8: what git runs on the host after a worker was there is named. That git
// does run it, git itself shows.
func TestWhatGitRunsIsNamed(t *testing.T) {
	_, err := exec.LookPath("git")
	testutil.Require(t, err == nil, "no git")
	template := filepath.Join(t.TempDir(), "template")
	prepared := &gitCase{T: t, dir: template, home: t.TempDir()}
	prepared.mkdir(".")
	prepared.git("init", "-q", "-b", "main")
	prepared.git("commit", "-q", "--allow-empty", "-m", "first")
	prepared.git("commit", "-q", "--allow-empty", "-m", "second")
	for _, tt := range gitTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			c := &gitCase{T: t, dir: dir, home: t.TempDir(), witness: filepath.Join(t.TempDir(), "witness")}
			if err := os.CopyFS(dir, os.DirFS(template)); err != nil {
				t.Fatal(err)
			}
			if tt.before != nil {
				tt.before(c)
			}
			if tt.mounts == nil {
				tt.mounts = []string{"."}
			}
			before := c.snapshot(tt.mounts)
			if again := before.Compare(c.snapshot(tt.mounts)); len(again) > 0 {
				t.Errorf("without a change: %v", again)
			}
			tt.attack(c)
			after := c.snapshot(tt.mounts) // before git runs, which writes too
			if out, _ := c.run(tt.victim...); !exists(c.witness) {
				t.Errorf("git %v didn't run it:\n%s", tt.victim, out)
			}
			var got []string
			for _, ch := range before.Compare(after) {
				rel, _ := filepath.Rel(dir, ch.Path)
				got = append(got, string(ch.Kind)+" "+rel)
			}
			if !slices.Contains(got, tt.changed) {
				t.Errorf("named %q, want %q", got, tt.changed)
			}
		})
	}
}

// B8: a value of git's configuration is taken for a file's name, unless git never takes
// it for one; a file that configuration begins to name isn't called new.
func TestNamesInConfiguration(t *testing.T) {
	_, err := exec.LookPath("git")
	testutil.Require(t, err == nil, "no git")
	for _, tt := range []struct {
		name   string
		before func(c *gitCase)
		attack func(c *gitCase)
		want   []string
	}{
		{
			name: "a commit to the branch that a clone tracks",
			before: func(c *gitCase) {
				c.git("config", "branch.main.remote", "origin")
				c.git("config", "branch.main.merge", "refs/heads/main")
			},
			attack: func(c *gitCase) { c.git("commit", "-q", "--allow-empty", "-m", "second") },
		},
		{
			name:   "control: the same value of a variable that may be a command",
			before: func(c *gitCase) { c.git("config", "alias.merge", "refs/heads/main") },
			attack: func(c *gitCase) { c.git("commit", "-q", "--allow-empty", "-m", "second") },
			want:   []string{"changed .git/refs/heads/main"},
		},
		{
			name:   "a value that was there, and was no name",
			attack: func(c *gitCase) { c.git("config", "foo.bar", "x") },
			want:   []string{"changed .git/config", "named x by .git/config"},
		},
		{
			name:   "hooks that were there",
			before: func(c *gitCase) { c.put("tools/pre-commit", "") },
			attack: func(c *gitCase) { c.git("config", "core.hooksPath", "tools") },
			want:   []string{"changed .git/config", "named tools by .git/config", "named tools/pre-commit by .git/config"},
		},
		{
			name:   "by a file that is included from now on",
			before: func(c *gitCase) { c.put("conf", "[foo]\n\tbar = x\n") },
			attack: func(c *gitCase) { c.git("config", "include.path", "../conf") },
			want:   []string{"changed .git/config", "named conf by .git/config", "named x by conf"},
		},
		{
			name:   "a file that was named",
			before: func(c *gitCase) { c.git("config", "foo.bar", "x") },
			attack: func(c *gitCase) { c.put("x", "evil") },
			want:   []string{"changed x"},
		},
		{
			name:   "a new one that was named",
			before: func(c *gitCase) { c.git("config", "foo.bar", "y") },
			attack: func(c *gitCase) { c.put("y", "evil") },
			want:   []string{"new y"},
		},
		{
			name:   "a removed one that was named",
			before: func(c *gitCase) { c.git("config", "foo.bar", "x") },
			attack: func(c *gitCase) { c.remove("x") },
			want:   []string{"removed x"},
		},
		{
			name:   "no longer named",
			before: func(c *gitCase) { c.git("config", "foo.bar", "x") },
			attack: func(c *gitCase) { c.git("config", "--unset", "foo.bar") },
			want:   []string{"changed .git/config"},
		},
		{
			name:   "before a NUL",
			before: func(c *gitCase) { c.put(".git/config", "[core]\n\trepositoryformatversion = 0\n\teditor = x\x00y\n") },
			attack: func(c *gitCase) { c.put("x", "evil") },
			want:   []string{"changed x"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			c := &gitCase{T: t, dir: dir, home: t.TempDir()}
			c.git("init", "-q", "-b", "main")
			c.git("commit", "-q", "--allow-empty", "-m", "first")
			c.put("x", "mine")
			if tt.before != nil {
				tt.before(c)
			}
			before := c.snapshot([]string{"."})
			tt.attack(c)
			// What an earlier version kept doesn't say what names a file, and has each
			// branch that a clone tracks.
			earlier := Snapshot{filepath.Join(dir, ".git/refs/heads/main"): "digest"}
			for p := range before {
				earlier[p] = before.digest(p)
			}
			for _, before := range []Snapshot{before, earlier} {
				var got []string
				for _, ch := range before.Compare(c.snapshot([]string{"."})) {
					text := string(ch.Kind) + " " + strings.TrimPrefix(ch.Path, dir+"/")
					if ch.Kind == Named {
						text += " by " + strings.TrimPrefix(ch.Why, dir+"/")
					}
					got = append(got, text)
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("changes %q, want %q", got, tt.want)
				}
			}
		})
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// B8: what shells, editors and other tools run without being asked is named, in
// directories of links too.
func TestWhatOthersRunIsNamed(t *testing.T) {
	c := &gitCase{T: t, dir: t.TempDir(), home: t.TempDir()}
	c.put("tools/editor/tasks.json", "{}")
	c.put("tools/env", "")
	c.link("tools/editor", ".vscode")
	c.link("tools/env", ".envrc")
	before := c.snapshot([]string{"."})
	var want []string
	for _, name := range []string{
		".bsp/sbt.json", ".cargo/config.toml", ".config/mise/config.toml", ".cursor/mcp.json", ".devcontainer/x/init.sh", ".dir-locals.el",
		".direnv/flake-profile-1.rc", ".exrc", ".hg/hgrc", ".irbrc", ".jj/repo/config.toml", ".vim/coc-settings.json",
		"a/.aider.conf.yml", "a/.ghci", "a/.iex.exs", "a/.jj/repo", "a/.lazygit.yml", "a/.nvim.lua", "a/.ocamlinit", "a/.octaverc", "a/.pdbrc", "a/.pryrc", "a/.zed/settings.json", "flake.nix",
	} {
		c.put(name, "x")
		want = append(want, "new "+name)
	}
	c.put("tools/editor/tasks.json", "x")
	c.put("tools/env", "x")
	want = append(want, "changed tools/editor/tasks.json", "changed tools/env")
	c.put(".direnv/python/bin/activate", "")
	c.put("tools/other", "")
	var got []string
	for _, ch := range before.Compare(c.snapshot([]string{"."})) {
		rel, _ := filepath.Rel(c.dir, ch.Path)
		got = append(got, string(ch.Kind)+" "+rel)
	}
	if !slices.Equal(got, want) {
		t.Errorf("named %q\nwant  %q", got, want)
	}
	alone := c.snapshot([]string{".cursor", ".cargo"}) // mounted by themselves
	c.put(".cursor/mcp.json", "y")
	c.put(".cargo/config.toml", "y")
	if got := alone.Compare(c.snapshot([]string{".cursor", ".cargo"})); len(got) != 2 {
		t.Errorf("in mounts of their own: %v", got)
	}
}

// B8: the same by configuration of the user's that the environment names.
func TestWhatGitRunsByTheEnvironmentIsNamed(t *testing.T) {
	elsewhere := t.TempDir()
	write(t, elsewhere, "git/config", "[core]\n\thooksPath = githooks\n")
	for _, env := range []map[string]string{
		{"XDG_CONFIG_HOME": elsewhere},
		{"GIT_CONFIG_GLOBAL": elsewhere + "/git/config"},
		{"GIT_CONFIG_SYSTEM": elsewhere + "/git/config"},
		{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": "githooks"},
	} {
		t.Run(strings.Join(slices.Sorted(maps.Keys(env)), " "), func(t *testing.T) {
			for name, value := range env {
				t.Setenv(name, value)
			}
			c := &gitCase{T: t, dir: t.TempDir(), home: t.TempDir()}
			c.git("init", "-q")
			before := c.snapshot([]string{"."})
			c.put("githooks/pre-commit", "#!/bin/sh\n")
			want := Change{Path: filepath.Join(c.dir, "githooks/pre-commit"), Kind: New}
			if got := before.Compare(c.snapshot([]string{"."})); !slices.Contains(got, want) {
				t.Errorf("named %v", got)
			}
		})
	}
}
