package monitor

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/lib/visible"
)

// Bounds of what is kept of a console.
const (
	tailLines = 20
	tailBytes = 8 << 10
)

// tail keeps the last lines that are written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-tailBytes):]...)
	if n := len(t.b); n > tailBytes {
		t.b = append(t.b[:0], t.b[n-tailBytes:]...)
	}
	return len(p), nil
}

// panicked begins the kernel's last line that says why it ended; its trace follows.
const panicked = "Kernel panic - not syncing"

// String returns the last lines, up to a panic, without what could change a terminal.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(bytes.ReplaceAll(t.b, []byte("\r"), nil))), "\n")
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, panicked) }); i >= 0 {
		lines = lines[:i+1]
	}
	return strings.Map(shown, strings.Join(lines[max(0, len(lines)-tailLines):], "\n"))
}

// shown replaces what could change a terminal.
func shown(r rune) rune {
	if r != '\n' && r != '\t' && visible.Hidden(r) {
		return utf8.RuneError
	}
	return r
}
