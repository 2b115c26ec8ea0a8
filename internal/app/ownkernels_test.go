package app

import (
	"testing"

	"github.com/llmdo/workshop/internal/engine"
)

// TestUntold: workers of rooms with an outlet are named, and no others.
func TestUntold(t *testing.T) {
	container := func(service, role, room string) engine.Container {
		return engine.Container{Service: service, Role: role, NetworkOf: room}
	}
	seen := engine.Observed{Containers: []engine.Container{
		container("b", "worker", "2"), container("a", "worker", "1"), container("plain", "worker", "3"), container("none", "worker", ""),
		container("outlet-a", "outlet", "1"), container("outlet-b", "outlet", "2"), container("outlet-gone", "outlet", ""), container("room", "room", ""),
	}}
	const why = ": its own kernel refuses ports that no line names, untold but for those of well-known services (B28)"
	for worker, want := range map[string]string{"": WorkersText([]string{"a", "b"}) + why, "b": "b" + why, "plain": "", "none": ""} {
		if got := UntoldText(seen, worker); got != want {
			t.Errorf("%q: %q, want %q", worker, got, want)
		}
	}
}
