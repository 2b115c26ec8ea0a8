package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/tool"
)

// What sessions have by its path, of root's above all, is nobody else's on the
// machine.
func TestNobodyElse(t *testing.T) {
	h := inHouse(t)
	s := h.session("one")
	var r tool.ShellResult
	if err := s.call(tool.Shell, tool.ShellArgs{Command: "cat copy/c.txt && cd copy && cat c.txt && touch $HOME/x $TMPDIR/x"}, &r); err != nil || r.Stdout.Text != "copied\ncopied\n" {
		t.Errorf("the worker itself: %v %+v", err, r)
	}
	data := h.e.opts.DataDir
	var copied string
	_ = filepath.WalkDir(data, func(p string, d os.DirEntry, _ error) error {
		if strings.HasSuffix(p, "/c.txt") {
			copied = p
		}
		return nil
	})
	if copied == "" {
		t.Fatal("there is no copy")
	}
	if os.Geteuid() != 0 {
		if info, err := os.Stat(filepath.Dir(copied)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v %v", info, err)
		}
		return
	}
	for _, p := range []string{copied, filepath.Dir(copied), filepath.Join(data, h.project, ownName)} {
		cmd := exec.Command("ls", "-R", p)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary + 1, Gid: ordinary + 1}}
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("another user lists %s:\n%s", p, out)
		}
	}
}
