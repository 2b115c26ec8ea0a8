package docker

import (
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/internal/engine"
)

// withoutLimits removes from a creation the limits that the engine can't enforce, and
// labels the container as one for which B5 isn't held. The engine itself would only warn.
func (c *creation) withoutLimits(can engine.Limits) {
	h := c.host
	if !can.Memory {
		h.Memory, h.MemoryReservation = 0, 0
	}
	if !can.Memory || !can.Swap {
		h.MemorySwap = 0
	}
	if !can.CPU {
		h.NanoCPUs = 0
	}
	if !can.PIDs {
		h.PidsLimit = nil
	}
	c.waive("B5")
}

// waive labels the container as one for which a promise isn't held.
func (c *creation) waive(promise string) {
	labels := c.config.Labels
	labels[engine.LabelNotHeld] = strings.TrimPrefix(labels[engine.LabelNotHeld]+","+promise, ",")
}

// notHeld reads the label.
func notHeld(s *container.Summary) []string {
	return strings.FieldsFunc(s.Labels[engine.LabelNotHeld], func(r rune) bool { return r == ',' })
}
