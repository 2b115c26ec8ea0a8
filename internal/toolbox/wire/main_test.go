package wire

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain looks for goroutines that the tests' connections left behind.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leftover(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines were left behind:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leftover gives the stacks of this package's goroutines that don't end.
func leftover() string {
	var left []string
	for range 100 {
		buf := make([]byte, 1<<20)
		left = nil
		for i, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if i > 0 && strings.Contains(g, "internal/toolbox/wire.") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	return strings.Join(left, "\n\n")
}
