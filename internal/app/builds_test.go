package app

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/trust"
)

// TestBuildApproval: refused without a person, agreed by --yes, and asked no
// more once the content was agreed to.
func TestBuildApproval(t *testing.T) {
	home := t.TempDir()
	a := testEnv(&Env{Dir: home, Home: home, Lookup: func(string) (string, bool) { return "", false }}, io.Discard)
	b := BuildRequest{For: "one", Context: home, Dockerfile: "Dockerfile", Digest: "abc"}
	err := a.Approver("workshop up", false)(t.Context(), b)
	f, ok := errors.AsType[*Failure](err)
	if !ok || f.Code != CodeRefused || !strings.Contains(strings.Join(f.Hints, "\n"), "`workshop up --yes`") {
		t.Fatalf("%v", err)
	}
	if err := a.Approver("workshop up", true)(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := a.Approver("workshop up", false)(t.Context(), b); err == nil {
		t.Error("--yes of one run was remembered")
	}
	if err := (trust.Builds{Dir: a.StateDir()}).Add(b.Digest, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := a.Approver("workshop up", false)(t.Context(), b); err != nil {
		t.Errorf("agreed to, and asked again: %v", err)
	}
	b.Digest = "abd"
	if err := a.Approver("workshop up", false)(t.Context(), b); err == nil {
		t.Error("another content was not asked about")
	}
}
