package app

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// TestLinkedWorktree makes real worktrees and a submodule's kind of .git.
func TestLinkedWorktree(t *testing.T) {
	_, err := exec.LookPath("git")
	testutil.Require(t, err == nil, "no git program")
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "main")
	git("-C", "main", "commit", "-q", "--allow-empty", "-m", "first")
	git("-C", "main", "worktree", "add", "-q", "../Feature-X")
	below := filepath.Join(root, "Feature-X", "deep", "er")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	submodule := filepath.Join(root, "main", "sub")
	if err := os.MkdirAll(filepath.Join(root, "main", ".git", "modules", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(submodule, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(submodule, ".git"), []byte("gitdir: ../.git/modules/sub\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		filepath.Join(root, "main"): "",
		below:                       "Feature-X",
		submodule:                   "",
		root:                        "",
	} {
		if got := linkedWorktree(dir); got != want {
			t.Errorf("linkedWorktree(%s) = %q, want %q", dir, got, want)
		}
	}
	a := testEnv(&Env{}, io.Discard)
	if got, err := a.projectName("review", below); err != nil || got != "review-feature-x" {
		t.Errorf("projectName = %q, %v", got, err)
	}
}

func TestProjectName(t *testing.T) {
	for in, want := range map[string]string{
		"My Project (2)": "my-project-2",
		"--x--":          "x",
		"Ü":              "fallback",
		"":               "fallback",
		"ok_1":           "ok_1",
	} {
		if got := ProjectSafe(in, "fallback"); got != want {
			t.Errorf("ProjectSafe(%q) = %q, want %q", in, got, want)
		}
	}
	long := ProjectSafe(strings.Repeat("long-", 40), "")
	other := ProjectSafe(strings.Repeat("long-", 40)+"er", "")
	if len(long) > MaxProjectName || !ValidName(long) || long == other {
		t.Errorf("long names: %q, %q", long, other)
	}
	a := testEnv(&Env{Settings: Settings{Project: "Not/OK"}}, io.Discard)
	if _, err := a.projectName("x", t.TempDir()); err == nil {
		t.Error("-p Not/OK was taken")
	}
}
