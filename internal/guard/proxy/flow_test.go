package proxy

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// TestReap: B60. What a program that is gone waited for is forgotten long before
// what one still waits for.
func TestReap(t *testing.T) {
	var f Flows
	always := func(*policy.Room) bool { return true }
	in, client := testutil.TCPPair(t)
	out, server := testutil.TCPPair(t)
	f.Add(in, out, always)
	ended := func() bool {
		t.Helper()
		f.reap(time.Hour, 20*time.Millisecond)
		_ = server.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := server.Read(make([]byte, 1))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	time.Sleep(50 * time.Millisecond)
	if ended() {
		t.Fatal("a connection whose client waits was reset")
	}
	client.Close()
	time.Sleep(50 * time.Millisecond)
	if !ended() {
		t.Error("a connection whose client is gone is kept")
	}
}

// TestB27_RevokeCountsOnce: B27. A flow that was reset stays listed until its
// carriers have noticed; the next change doesn't count it again.
func TestB27_RevokeCountsOnce(t *testing.T) {
	var f Flows
	never := func(*policy.Room) bool { return false }
	in, out := testutil.TCPPair(t)
	f.Add(in, out, never)
	if n := f.Revoke(nil); n != 1 {
		t.Errorf("the first time: %d", n)
	}
	in2, out2 := testutil.TCPPair(t)
	f.Add(in2, out2, never)
	if n := f.Revoke(nil); n != 1 {
		t.Errorf("the second time: %d, only one is new", n)
	}
}
