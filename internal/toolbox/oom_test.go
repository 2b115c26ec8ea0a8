//go:build linux

package toolbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What was killed for the worker's memory is said whatever the exit code, if it was
// while the command ran, and names no key of the workshop's file.
func TestMemoryNote(t *testing.T) {
	before, file := oomFiles, filepath.Join(t.TempDir(), "memory.events")
	t.Cleanup(func() { oomFiles = before })
	oomFiles = []string{file}
	if err := os.WriteFile(file, []byte("oom 4\noom_kill 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const used = ": the worker's memory was used up"
	for _, tt := range []struct {
		name  string
		code  int
		kills int64
		want  string
	}{
		{"killed", 137, 2, "OOM-killed, probably" + used},
		{"killed by somebody else", 137, 3, ""},
		{"a success", 0, 3, ""},
		{"a success, and something was killed", 0, 1, "a process was OOM-killed while the command ran" + used},
		{"a failure, and something was killed", 1, 1, "a process was OOM-killed while the command ran" + used},
		{"not known from before", 0, -1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, _ := strings.Cut((&session{}).memoryNote(tt.code, tt.kills, false), "; of it")
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
