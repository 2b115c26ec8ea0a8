package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/source"
)

// The sides of a comparison have their own locks and vendor directories; nothing is
// fetched for one.
func TestDiffOfSources(t *testing.T) {
	s := newShared(t)
	testutil.Git(t, s.env.Dir, "init", "-q")
	commit := func() {
		testutil.Git(t, s.env.Dir, "add", "-A", "-f")
		testutil.Git(t, s.env.Dir, "commit", "-qm", "x")
	}
	vendor := func() {
		t.Helper()
		root, err := os.OpenRoot(s.env.Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		tree, err := s.env.sourceCache().Get(s.locked().Tree)
		if err == nil {
			err = source.Vendor(root, s.id, tree)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.lock(LockOptions{})
	vendor()
	commit()
	s.release("v1.1.0", "  description: later\n")
	testutil.Git(t, s.repo, "tag", "-f", "v1.1.0")
	s.lock(LockOptions{Upgrade: true})
	vendor()
	s.cold()
	if _, err := s.env.Diff(t.Context(), DiffOptions{Base: "HEAD"}); err != nil {
		t.Errorf("%v\n%s", err, s.said.String())
	}
	if err := os.RemoveAll(filepath.Join(s.env.Dir, ".workshop")); err != nil {
		t.Fatal(err)
	}
	_, err := s.env.Diff(t.Context(), DiffOptions{Base: "HEAD"})
	s.fails("head isn't vendored", err, CodeInvalid, "neither vendored nor in the cache")
}
