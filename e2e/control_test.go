//go:build linux

package e2e

import (
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/e2e/scenario"
)

// TestB22_ControlIsOutOfReach: the guard's control socket is a file of the
// guard's own; no worker has it, nor has whoever is root in a room.
func TestB22_ControlIsOutOfReach(t *testing.T) {
	s := scenario.New(t, "restricted", "no worker reaches the guard's control")
	s.Up()
	for _, r := range s.ProbeBy(s.Containers()["guard"].ID, compose.ImageInit, "list /run/guard", "stat /run/guard/control.sock", "exec "+compose.ImageInit+" connect") {
		switch r.Probe + " " + r.Seen {
		case "list control.sock", "stat 65532:65532 0600", "exec exit 0":
		default:
			t.Errorf("control: %s %v: %s (%s)", r.Probe, r.Args, r.Seen, r.Detail)
		}
	}
	s.Sees("worker", "list /run/guard -> ENOENT", "exec "+compose.InitPath+" connect -> exit 1")
	root := s.Intruder("room", container.HostConfig{})
	for _, r := range root("list /run/guard", "exec "+compose.InitPath+" connect") {
		if r.Seen != "ENOENT" && r.Seen != "exit 1" {
			t.Errorf("root in the room: %s %v: %s (%s)", r.Probe, r.Args, r.Seen, r.Detail)
		}
	}
}
