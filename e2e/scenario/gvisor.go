//go:build linux

package scenario

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/ownengine"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// Runsc builds gVisor's runtime, or finds it built.
func Runsc(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("../scripts/runsc").Output()
	testutil.Require(t, err == nil, "scripts/runsc failed")
	return strings.TrimSpace(string(out))
}

// NewGVisorEngine is [NewEngine] with a program registered as gVisor's runtime; without
// flags, with those that it needs.
func NewGVisorEngine(t *testing.T, program string, flags ...string) *OwnEngine {
	t.Helper()
	args, err := ownengine.WithGVisor(filepath.Join(t.TempDir(), "daemon.json"), program, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return NewEngine(t, args...)
}
