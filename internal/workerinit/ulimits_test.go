//go:build linux

package workerinit

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/workerinit/pid1"
)

// TestUlimits: a worker has its limits of setrlimit(2) where the engine sets none (B60).
func TestUlimits(t *testing.T) {
	for resource, most := range map[int]uint64{unix.RLIMIT_NOFILE: pid1.Files, unix.RLIMIT_SIGPENDING: pid1.Signals} {
		var own unix.Rlimit
		if err := unix.Getrlimit(resource, &own); err != nil {
			t.Fatal(err)
		}
		if own.Max <= most {
			t.Fatalf("this process has limit %d of %d: nothing to lower", own.Max, resource)
		}
	}
	g := start(t)
	g.expect("READY")
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", g.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for name, most := range map[string]int{"Max open files": pid1.Files, "Max pending signals": pid1.Signals} {
		_, rest, _ := strings.Cut(string(b), name)
		n := strconv.Itoa(most)
		if got := strings.Fields(rest); len(got) < 2 || got[0] != n || got[1] != n {
			t.Errorf("%s: want %s, got\n%s", name, n, b)
		}
	}
}
