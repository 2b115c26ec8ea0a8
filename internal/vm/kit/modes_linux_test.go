package kit

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/vm/report"
)

// The user of a worker can read a kit whatever the umask of who made it.
func TestKitIsReadable(t *testing.T) {
	m := made(t, tree(t))
	parent := t.TempDir()
	defer unix.Umask(unix.Umask(0o077))
	dir, err := m.Write(parent)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{".": 0o755, Vmlinux: 0o444, Initramfs: 0o444, report.KitFile: 0o444} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}
