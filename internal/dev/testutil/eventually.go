package testutil

import (
	"testing"
	"time"
)

// Eventually asks every 5 milliseconds whether something has come true, and fails
// the test where it hasn't within 20 seconds.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: not within 20 seconds", what)
}
