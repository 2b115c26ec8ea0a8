//go:build linux

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// gitWorkshop mounts the whole project at /workspace.
func gitWorkshop(mount string) map[string]string {
	files := withMount("{source: ., target: /workspace, " + mount + "}")
	files["workshop.yaml"] = strings.Replace(files["workshop.yaml"], "  workers:", "    workdir: /workspace\n    env: {GIT_AUTHOR_NAME: dev, GIT_AUTHOR_EMAIL: dev@example.org, GIT_COMMITTER_NAME: dev, GIT_COMMITTER_EMAIL: dev@example.org}\n  workers:", 1)
	return files
}

// hostGit is git of the directory's owner on this machine. A worker's commands must not run
// there: only what reads a repository is called after one was up.
func hostGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=host", "GIT_AUTHOR_EMAIL=host@example.org", "GIT_COMMITTER_NAME=host", "GIT_COMMITTER_EMAIL=host@example.org"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: scenario.UID, Gid: scenario.UID}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes a repository of the scenario's directory, with its files in one commit.
func repository(t *testing.T, s *scenario.Scenario) {
	t.Helper()
	_, err := exec.LookPath("git")
	testutil.Require(t, err == nil, "no git")
	s.Chown()
	if err := os.Chown(filepath.Dir(s.Dir), scenario.UID, scenario.UID); err != nil { // worktrees are made next to it
		t.Fatal(err)
	}
	hostGit(t, s.Dir, "init", "-q", "-b", "main")
	hostGit(t, s.Dir, "add", ".")
	hostGit(t, s.Dir, "commit", "-qm", "first")
}

// beside is a scenario of another directory.
func beside(s *scenario.Scenario, name string) *scenario.Scenario {
	other := *s
	other.Dir, other.Project = filepath.Join(filepath.Dir(s.Dir), name), s.Project+"-"+name
	s.Cleanup(func() { other.Run("down") })
	return &other
}

// inside runs a line of shell in the worker.
func inside(s *scenario.Scenario, line string) scenario.Done {
	s.Helper()
	return s.Run("exec", "worker", "--", "sh", "-ec", line)
}

// TestB08_LinkedWorktrees: two linked worktrees and the main checkout are up at once, and
// commit. Nothing that git runs or obeys is writable in the repository.
func TestB08_LinkedWorktrees(t *testing.T) {
	s := scenario.At(t, "workers commit in worktrees of one repository at the same time, and change nothing that git runs", gitWorkshop("mode: rw, git: rw"))
	repository(t, s)
	hostGit(t, s.Dir, "branch", "packed")
	hostGit(t, s.Dir, "pack-refs", "--all")
	hostGit(t, s.Dir, "worktree", "add", "-q", "../a")
	hostGit(t, s.Dir, "worktree", "add", "-q", "../b")
	all := []*scenario.Scenario{s, beside(s, "a"), beside(s, "b")}
	for _, w := range all {
		d := w.Up()
		if said := "the repository of this worktree is at " + filepath.Join(s.Dir, ".git"); strings.Contains(d.Err, said) != (w != s) {
			t.Errorf("up says\n%s", d.Err)
		}
	}
	var wait sync.WaitGroup
	for _, w := range all {
		wait.Go(func() {
			for range 5 {
				if d := inside(w, "echo x >> $HOSTNAME.txt; git add -A; git commit -qm more; git status --short"); d.Code != 0 || d.Out != "" {
					t.Errorf("%s: exit code %d\n%s%s", w.Dir, d.Code, d.Out, d.Err)
				}
			}
		})
	}
	wait.Wait()
	for _, w := range all {
		if n := hostGit(t, w.Dir, "rev-list", "--count", "HEAD"); n != "6" {
			t.Errorf("%s has %s commits", w.Dir, n)
		}
	}
	a := all[1]
	for _, line := range gitWorks {
		if d := inside(a, line); d.Code != 0 || strings.Contains(d.Err, "rror") {
			t.Errorf("%s: exit code %d\n%s%s", line, d.Code, d.Out, d.Err)
		}
	}
	if d := inside(a, "git worktree prune; git worktree list --porcelain"); d.Code != 0 || !strings.Contains(d.Out, "worktree /workspace\n") {
		t.Errorf("git worktree list: exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	for _, w := range all {
		w.Expect(0, "ps", "--strict")
	}
	attackWorktree(t, s, a)
	hostGit(t, s.Dir, "fsck")
	for _, w := range all {
		w.Expect(0, "down")
		w.Up()
		w.Expect(0, "down")
	}
}

// gitWorks are what people do with git. None fails or complains in a linked worktree.
var gitWorks = []string{
	"git switch -qc side HEAD~1; echo s > side.txt; git add .; git commit -qm side; git switch -q a; git rebase -q side",
	"git switch -qc pick side; echo p > p.txt; git add .; git commit -qm pick; git switch -q a; git cherry-pick pick >/dev/null; git switch -q side; git merge -q --no-edit pick; git switch -q a",
	"git commit -q --amend -m amended; git revert --no-edit HEAD~1 >/dev/null",
	"echo s >> side.txt; git stash -q; git stash pop -q; git checkout -q .",
	"git tag v1; git tag -am x v2; git tag -d v1 >/dev/null; git notes add -m note",
	"git branch gone; git update-ref -d refs/heads/gone; git update-ref -d refs/heads/packed; git pack-refs --all",
	"git bisect start HEAD HEAD~3 >/dev/null; git bisect good >/dev/null; git bisect reset 2>/dev/null",
	"git clone -q . /tmp/clone 2>/dev/null; git -C /tmp/clone commit -q --allow-empty -m other; git fetch -q /tmp/clone HEAD; git merge -q FETCH_HEAD",
	"git reset -q --hard HEAD~1; git fsck 2>/dev/null >&2",
}

// attackWorktree plants what git runs or obeys, by each path of the repository.
func attackWorktree(t *testing.T, s, a *scenario.Scenario) {
	t.Helper()
	for _, p := range []string{
		"config", "config.new", "hooks/post-checkout", "info/attributes", "objects/info/alternates", "worktrees/b/commondir", "worktrees/b/HEAD", "worktrees/new",
		"worktrees/a/commondir", "worktrees/a/gitdir",
	} {
		full := filepath.Join(s.Dir, ".git", p)
		if d := inside(a, "echo evil >> "+full); (d.Code == 0) != (p == "config.new") {
			t.Errorf("writing %s: exit code %d", p, d.Code)
		}
		if d := inside(a, "echo evil > /tmp/new; mv -f /tmp/new "+full); (d.Code == 0) != (p == "config.new") {
			t.Errorf("replacing %s: exit code %d", p, d.Code)
		}
	}
	_ = os.Remove(filepath.Join(s.Dir, ".git/config.new"))
	for _, p := range []string{"hooks", "info", "objects", "objects/info", "worktrees", "worktrees/a"} {
		full := filepath.Join(s.Dir, ".git", p)
		if d := inside(a, "mv "+full+" "+full+"2"); d.Code == 0 {
			t.Errorf("%s can be moved away", p)
		}
	}
	a.Expect(0, "ps", "--strict")
	// New files can't be prevented in .git itself and in the worktree's own directory.
	for _, p := range []string{"commondir", "config.worktree", "worktrees/a/config.worktree", "worktrees/a/hooks/x"} {
		full := filepath.Join(s.Dir, ".git", p)
		if d := inside(a, "mkdir -p $(dirname "+full+"); echo evil > "+full); d.Code != 0 {
			t.Errorf("writing %s: %s", p, d.Err)
		}
		if d := a.Run("ps", "--strict"); d.Code != 4 || !strings.Contains(d.Err, full) && !strings.Contains(d.Err, p) {
			t.Errorf("ps --strict about %s: exit code %d\n%s", p, d.Code, d.Err)
		}
		if err := os.Remove(full); err != nil {
			t.Error(err)
		}
		_ = os.Remove(filepath.Join(s.Dir, ".git/worktrees/a/hooks"))
		a.Expect(0, "ps", "--strict")
	}
}

// TestB08_WorktreeIsReadOnly: without `git: rw` history can be read, and nothing of the
// repository can be written.
func TestB08_WorktreeIsReadOnly(t *testing.T) {
	s := scenario.At(t, "a worktree's repository is read-only, as .git of a checkout is", gitWorkshop("mode: rw"))
	repository(t, s)
	hostGit(t, s.Dir, "worktree", "add", "-q", "../a")
	a := beside(s, "a")
	a.Up()
	if d := inside(a, "git log --format=%s; git status --short; echo x >> workers/worker.md; git diff --stat | tail -1"); d.Code != 0 || !strings.Contains(d.Out, "first\n 1 file changed") {
		t.Errorf("exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	for _, p := range []string{"objects/x", "refs/heads/x", "HEAD", "worktrees/a/index", "worktrees/a/HEAD", "x"} {
		if d := inside(a, "echo x >> "+filepath.Join(s.Dir, ".git", p)); d.Code == 0 {
			t.Errorf("%s can be written", p)
		}
	}
	if scenario.TheEngine() != scenario.Docker { // which alone has plain Compose
		return
	}
	a.Write("workshop.yaml", strings.Replace(a.Read("workshop.yaml"), "mode: rw", "mode: rw, git: rw", 1))
	a.Expect(0, "up", "--accept-watched")
	a.Expect(0, "down")
	composeUp(t, a)
	repo := filepath.Join(s.Dir, ".git")
	a.Sees("worker", "write "+repo+"/worktrees/a/x -> ok", "write "+repo+"/config -> EROFS", "write "+repo+"/hooks/x -> EROFS", "write "+repo+"/worktrees/a/commondir -> EROFS", "read "+repo+"/worktrees/a/gitdir -> ok")
}

// TestB07_GitFileMountsNothing: a .git file that a repository or a worker wrote gives no
// worker another repository of the user.
func TestB07_GitFileMountsNothing(t *testing.T) {
	s := scenario.At(t, "a .git file that names another repository mounts nothing", gitWorkshop("mode: rw"))
	repository(t, s) // the user's other one
	hostGit(t, s.Dir, "worktree", "add", "-q", "../x")
	hostile := beside(s, "hostile")
	if err := os.Mkdir(hostile.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range gitWorkshop("mode: rw") {
		hostile.Write(name, text)
	}
	hostile.Write(".git", "gitdir: "+filepath.Join(s.Dir, ".git/worktrees/x")+"\n")
	hostile.Chown()
	d := hostile.Up()
	if !strings.Contains(d.Err, "git doesn't work in this worktree") || !strings.Contains(d.Err, "git worktree repair") {
		t.Errorf("up says\n%s", d.Err)
	}
	if d := inside(hostile, "ls "+filepath.Join(s.Dir, ".git")); d.Code == 0 {
		t.Errorf("the other repository is in the worker:\n%s", d.Out)
	}
	hostile.Write("workshop.yaml", strings.Replace(hostile.Read("workshop.yaml"), "mode: rw", "mode: rw, git: rw", 1))
	if d := hostile.Run("up", "--accept-watched"); d.Code == 0 || !strings.Contains(d.Err, "git can't work in .") {
		t.Errorf("with git: rw: exit code %d\n%s", d.Code, d.Err)
	}
}

// TestB08_Submodules: a worker commits in a submodule, whether its repository is mounted or
// the submodule alone; its hooks and configuration stay what they are.
func TestB08_Submodules(t *testing.T) {
	s := scenario.At(t, "commits in a submodule, with hooks and config held or compared", gitWorkshop("mode: rw, git: rw"))
	repository(t, s)
	lib := filepath.Join(filepath.Dir(s.Dir), "lib")
	if err := errors.Join(os.Mkdir(lib, 0o755), os.Chown(lib, scenario.UID, scenario.UID)); err != nil {
		t.Fatal(err)
	}
	hostGit(t, lib, "init", "-q", "-b", "main")
	other := beside(s, "lib")
	for name, text := range gitWorkshop("mode: rw, git: rw") {
		other.Write(name, strings.Replace(text, "target: /workspace", "target: /workspace/libs/x", 1))
	}
	other.Chown()
	hostGit(t, lib, "add", ".")
	hostGit(t, lib, "commit", "-qm", "lib")
	hostGit(t, s.Dir, "submodule", "--quiet", "add", lib, "libs/x")
	hostGit(t, s.Dir, "commit", "-qm", "with lib")
	s.Up()
	if d := inside(s, "cd libs/x; echo x > x; git add x; git commit -qm sub; git log --oneline | wc -l; cd ../..; git add libs/x; git commit -qm super"); d.Code != 0 || d.Out != "2\n" {
		t.Errorf("exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	modules := filepath.Join(s.Dir, ".git/modules/libs/x")
	if d := inside(s, "echo evil > /workspace/.git/modules/libs/x/hooks/post-checkout"); d.Code == 0 {
		t.Error("a hook of the submodule was written")
	}
	s.Expect(0, "ps", "--strict")
	s.Expect(0, "down")

	x := beside(s, "x")
	x.Dir = filepath.Join(s.Dir, "libs/x")
	if d := x.Up(); !strings.Contains(d.Err, "the repository of this submodule is at "+modules) {
		t.Errorf("up says\n%s", d.Err)
	}
	if d := inside(x, "cd /workspace/libs/x; echo y > y; git add y; git commit -qm alone; git rebase -q HEAD~1; git status --short; git log --oneline | wc -l"); d.Code != 0 || d.Out != "3\n" {
		t.Errorf("exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	for _, p := range []string{"config", "hooks/post-checkout", "objects/info/alternates"} {
		if d := inside(x, "echo evil >> /workspace/.git/modules/libs/x/"+p); d.Code == 0 {
			t.Errorf("%s was written", p)
		}
	}
	if d := inside(x, "ls /workspace/.git"); d.Out != "modules\n" {
		t.Errorf("of the superproject it sees %s", d.Out)
	}
	x.Expect(0, "ps", "--strict")
	x.Expect(0, "down")
	// At another target git would look for the files elsewhere.
	x.Write("workshop.yaml", strings.Replace(x.Read("workshop.yaml"), "/workspace/libs/x,", "/code,", 1))
	if d := x.Run("up"); d.Code == 0 || !strings.Contains(d.Err, "git would look for the files of this submodule in /libs/x") {
		t.Errorf("exit code %d\n%s", d.Code, d.Err)
	}
}
