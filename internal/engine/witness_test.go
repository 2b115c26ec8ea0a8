package engine

import "testing"

// TestGuestTarget: what a machine's container has is at a worker's target unless the worker has
// something else there.
func TestGuestTarget(t *testing.T) {
	g := Guest{"/shares/ro/0": "/workspace", "/shares/rw/0": "/workspace/out", "/shares/ro/1": "/ca.pem"}
	for place, want := range map[string]string{
		"/shares/ro/0": "/workspace", "/shares/ro/0/in": "/workspace/in", "/shares/rw/0": "/workspace/out", "/shares/rw/0/.git": "/workspace/out/.git",
		"/shares/ro/0/out": "/shares/ro/0/out", "/shares/ro/0/out/deep": "/shares/ro/0/out/deep", "/shares/ro/10": "/shares/ro/10", "/shares/ro/1": "/ca.pem", "/kit": "/kit", "/": "/",
	} {
		if got := g.Target(place); got != want {
			t.Errorf("%s is at %s, want %s", place, got, want)
		}
	}
	if got := Guest(nil).Target("/workspace"); got != "/workspace" {
		t.Errorf("without a machine: %s", got)
	}
}
