package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/source"
)

// A vendored project takes a newer release: what is vendored is of the lock before until it
// is written anew, and that is said.
func TestVendorAfterUpdate(t *testing.T) {
	s := newShared(t)
	s.lock(LockOptions{})
	vendor := func() error { _, err := s.env.Vendor(t.Context(), false); return err }
	s.fails("vendor", vendor(), 0, "")
	s.said.Reset()
	s.lock(LockOptions{AllSources: true})
	if strings.Contains(s.said.String(), "workshop vendor") {
		t.Error(s.said.String())
	}
	s.release("v1.1.0", "  description: newer\n")
	s.lock(LockOptions{AllSources: true})
	if said := s.said.String(); !strings.Contains(said, ".workshop/_vendor is not of this lock: run `workshop vendor`") {
		t.Errorf("%q", said)
	}
	s.said.Reset()
	s.fails("read", s.load(), CodeInvalid, "run `workshop vendor`")
	s.lock(LockOptions{}) // it doesn't read what is about to be written
	s.withoutGit(func() { s.fails("vendor, from the cache", vendor(), 0, "") })
	s.cold()
	s.withoutGit(func() {
		s.fails("read", s.load(), 0, "")
		s.fails("vendor what is vendored", vendor(), 0, "")
	})
	if s.read(source.VendorDir+"/"+s.id.VendorName()+"/workshop.yaml") == "" {
		t.Error("nothing is there")
	}
}

// A base that isn't vendored yet is read from the vendor directory of now, if that has the
// release that it locks.
func TestDiffVendoredSince(t *testing.T) {
	s := newShared(t)
	s.lock(LockOptions{})
	testutil.Git(t, s.env.Dir, "init", "-q")
	testutil.Git(t, s.env.Dir, "add", ".")
	testutil.Git(t, s.env.Dir, "commit", "-qm", "one")
	vendored := func() error { _, err := s.env.Vendor(t.Context(), false); return err }
	s.fails("vendor", vendored(), 0, "")
	s.cold()
	if r, err := s.env.Diff(t.Context(), DiffOptions{Base: "HEAD"}); err != nil || len(r.Rows) > 0 {
		t.Errorf("%v, %v\n%s", r.Rows, err, s.said.String())
	}
	file := filepath.Join(s.env.Dir, source.VendorDir, s.id.VendorName(), "workshop.yaml")
	if err := os.WriteFile(file, []byte("workshop: {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.env.Diff(t.Context(), DiffOptions{Base: "HEAD"}); err == nil {
		t.Error("another tree is compared")
	}
	// What is vendored of another release isn't taken for the one that the base locks.
	s.fails("vendor", errors.Join(os.RemoveAll(filepath.Dir(file)), vendored()), 0, "")
	s.release("v1.1.0", "  description: newer\n")
	s.lock(LockOptions{AllSources: true})
	s.fails("vendor the next", vendored(), 0, "")
	s.cold()
	r, err := s.env.Diff(t.Context(), DiffOptions{Base: "HEAD"})
	s.fails("another release", err, CodeInvalid, "neither vendored nor in the cache")
	if err == nil {
		t.Error(r.Rows)
	}
}
