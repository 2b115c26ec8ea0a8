//go:build linux

package e2e

import (
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/e2e/scenario"
)

// TestB22_ControlIsOutOfReach: the guard's control socket is a file of the
// guard's own, or no file at all; no worker has it, nor has whoever is root in a room.
func TestB22_ControlIsOutOfReach(t *testing.T) {
	s := restrictedStands.Look(t, "no worker reaches the guard's control")
	if err := s.GuardsControl(); err != nil {
		t.Errorf("control: %v", err)
	}
	s.Sees("worker", "list /run/guard -> ENOENT", "exec "+compose.InitPath+" connect -> exit 1")
	for _, r := range s.Intrude(&scenario.Intruder{Service: "room"}, "list /run/guard", "exec "+compose.ImageInit+" connect") {
		if r.Seen != "ENOENT" && r.Seen != "exit 1" {
			t.Errorf("root in the room: %s %v: %s (%s)", r.Probe, r.Args, r.Seen, r.Detail)
		}
	}
}
