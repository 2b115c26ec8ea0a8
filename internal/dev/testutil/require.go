package testutil

import (
	"os"
	"testing"
)

// Require skips the test with the reason when ok is false, or fails it where
// WORKSHOP_E2E=require says that nothing may be skipped (CI).
func Require(t testing.TB, ok bool, reason string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("WORKSHOP_E2E") == "require" {
		t.Fatalf("required here, but not available: %s", reason)
	}
	t.Skipf("skipped: %s", reason)
}
