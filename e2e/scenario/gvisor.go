//go:build linux

package scenario

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
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
	if len(flags) == 0 {
		flags = []string{"--host-uds=open", "--network=sandbox"}
	}
	b, err := json.Marshal(map[string]any{"runtimes": map[string]any{compose.GVisorRuntime: map[string]any{"path": program, "runtimeArgs": flags}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "daemon.json")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return NewEngine(t, "--config-file", file)
}
