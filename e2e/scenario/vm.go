//go:build linux

package scenario

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/llmdo/workshop/e2e/ownengine"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// machines are what virtual machines of scenarios are made of: settings, and a kit.
type machines struct {
	once sync.Once
	dir  string
	err  error
}

func (m *machines) environ() []string {
	return []string{"XDG_CONFIG_HOME=" + filepath.Join(m.dir, "config"), "XDG_DATA_HOME=" + filepath.Join(m.dir, "data")}
}

// VM returns the environment in which programs find a kit for virtual machines, of Debian's
// kernel.
func VM(t testing.TB) []string {
	t.Helper()
	l := TheLab(t)
	testutil.Require(t, runtime.GOARCH == "amd64", "virtual machines are there for amd64 alone")
	_, err := exec.LookPath("qemu-system-x86_64")
	testutil.Require(t, err == nil, "QEMU is not installed: scripts/need qemu-system-x86_64=qemu-system-x86")
	l.vm.once.Do(func() { l.vm.err = l.makeKit() })
	if l.vm.err != nil {
		t.Fatal(l.vm.err)
	}
	return l.vm.environ()
}

// uses lets the programs of a scenario that has settings of its own find the kit.
func (m *machines) uses(s *Scenario) {
	s.Helper()
	file := settingsOf(s.caller.home, append(m.environ(), s.Env...))
	if file == "" {
		return
	}
	kit, err := os.ReadFile(filepath.Join(m.dir, "config/workshop/config.yaml"))
	s.must(err)
	s.must(s.caller.as(func() error { return ownengine.AddSettings(file, string(kit)) }))
}

// makeKit makes the kit, as root, whose kernel it is, and gives it to the caller.
func (l *Lab) makeKit() error {
	tree, err := exec.Command("../scripts/vm-kernel").Output()
	if err != nil {
		return fmt.Errorf("scripts/vm-kernel: %w", err)
	}
	if l.vm.dir, err = os.MkdirTemp("", "workshop-e2e-vm-"); err != nil {
		return err
	}
	if err := os.Chmod(l.vm.dir, 0o755); err != nil {
		return err
	}
	// Where KVM is missing it fails, and has made the kit.
	cmd := exec.Command(l.Workshop(), "vm", "setup", "--kernel", strings.TrimSpace(string(tree)))
	cmd.Env = append(l.caller.environ(), l.vm.environ()...)
	out, err := cmd.CombinedOutput()
	if _, missing := os.Stat(filepath.Join(l.vm.dir, "config/workshop/config.yaml")); missing != nil {
		return fmt.Errorf("workshop vm setup: %w\n%s", err, out)
	}
	return chown(l.vm.dir, l.caller.uid)
}
