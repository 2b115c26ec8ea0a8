package facts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/llmdo/workshop/internal/testutil"
)

// A directory that nobody may read, but whose owner is the worker's user, is
// one chmod away from being read by the worker (B7, B8).
func TestClosedDirectories(t *testing.T) {
	dir := t.TempDir()
	info, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	uid, _, known := owner(info)
	testutil.Require(t, known, "this system tells no owners")
	for _, tt := range []struct {
		name string
		tree tree
		want bool
	}{
		{"another user's worker", tree{}, false},
		{"the caller's worker, read-only", tree{lenient: true}, true},
		{"the caller's worker, writable, its own directory", tree{lenient: true, opens: uid}, uid == 0},
		{"the caller's worker, writable, somebody else's", tree{lenient: true, opens: uid + 1}, true},
	} {
		if got := tt.tree.closed(dir); got != tt.want {
			t.Errorf("%s: closed = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Hooks of submodules that can't be looked for can't be protected (B8).
func TestUnreadableSubmodules(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, ".git/modules/lib/hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, ".git/modules/lib/HEAD"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := hooksBelow(root, []string{".git"})
	if err != nil || len(got) != 1 || got[0] != ".git/modules/lib/hooks" {
		t.Errorf("%v, %v", got, err)
	}
	// A name that is too long for the system is an error that root gets too.
	if _, err := hooksBelow(root, []string{string(make([]byte, 5000))}); err == nil {
		t.Error("no error")
	}
}
