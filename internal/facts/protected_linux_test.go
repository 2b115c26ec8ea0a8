package facts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// attempts are what a worker might try against protected directories; each
// prints "NAME done" or "NAME refused".
const attempts = `cd /repo
try() { n=$1; shift; if "$@" 2>/dev/null; then echo "$n done"; else echo "$n refused"; fi; }
plant() { echo evil > "$1"; }
try write-hook      plant .git/hooks/pre-commit
try replace-hook    ln -sf /x .git/hooks/sample
try write-claude    plant sub/deep/.claude/settings.json
try remove-claude   rm -rf sub/deep/.claude/settings.json
try rename-git      mv .git .git2
try rename-hooks    mv .git/hooks .git/hooks2
try rename-claude   mv sub/deep/.claude sub/deep/x
try rename-parent   mv sub sub2
try rename-parent2  mv sub/deep sub/deep2
try write-git-file   plant tree/module/.git
try rename-git-file  mv tree/module/.git tree/module/x
try rename-module    mv tree/module tree/other
try write-config    plant .git/config
try write-work      plant sub/deep/work
`

// B8 in a real container: neither writing nor renaming a directory above gets
// round the mounts. The control has the workspace without them.
func TestProtectedDirectoriesHoldInAContainer(t *testing.T) {
	docker := func(args ...string) (string, error) {
		out, err := exec.Command("docker", args...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	_, err := docker("version")
	testutil.Require(t, err == nil, "no docker engine answers")
	empty := filepath.Join(t.TempDir(), "empty.tar")
	if err := os.WriteFile(empty, make([]byte, 1024), 0o600); err != nil {
		t.Fatal(err)
	}
	image, err := docker("import", empty)
	if err != nil {
		t.Fatal(image)
	}
	defer docker("rmi", image)

	run := func(protect bool) map[string]string {
		t.Helper()
		dir, o := project(t, "    mounts: [{source: ./repo, target: /repo, mode: rw, git: rw}]\n")
		for _, f := range []string{".git/HEAD", ".git/config", ".git/hooks/sample", "sub/deep/.claude/settings.json", "sub/deep/x1", "tree/module/.git"} {
			write(t, dir, "repo/"+f, "x")
		}
		if err := chownAll(filepath.Join(dir, "repo")); err != nil {
			t.Fatal(err)
		}
		c, list := judge(t, o)
		if len(list) > 0 {
			t.Fatal(list)
		}
		s := c.Project.Services["one"]
		args := []string{"run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL", "--user", s.User}
		for _, p := range HostPaths("/") {
			args = append(args, "-v", p+":"+p+":ro")
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind || !strings.HasPrefix(v.Target, "/repo") || (!protect && v.Target != "/repo") {
				continue
			}
			m := "type=bind,source=" + v.Source + ",target=" + v.Target
			if v.ReadOnly {
				m += ",readonly"
			}
			args = append(args, "--mount", m)
		}
		out, err := docker(append(args, image, "/bin/sh", "-c", attempts)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := map[string]string{}
		for line := range strings.Lines(out) {
			name, what, _ := strings.Cut(strings.TrimSpace(line), " ")
			got[name] = what
		}
		return got
	}
	free := map[string]bool{"write-config": true, "write-work": true}
	protected, control := run(true), run(false)
	if len(protected) != 14 || len(control) != 14 {
		t.Fatalf("attempts are missing: %v, %v", protected, control)
	}
	for name, what := range protected {
		if want := map[bool]string{true: "done", false: "refused"}[free[name]]; what != want {
			t.Errorf("%s: %s; want %s", name, what, want)
		}
	}
	for _, name := range []string{"write-git-file", "rename-git-file", "write-hook", "replace-hook", "write-claude", "rename-git", "rename-parent"} {
		if control[name] != "done" {
			t.Errorf("control: %s was %s without protection", name, control[name])
		}
	}
}
