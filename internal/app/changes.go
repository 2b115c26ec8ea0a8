package app

import (
	"maps"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// Changes are what the steps of plans did to workers. The zero value is nothing.
type Changes struct {
	// Granted is what differs of what workers were granted before.
	Granted GrantChanges
	done    map[string]map[engine.Op]bool
	cause   map[string]string
}

// WorkerStep reports whether a step is about the container of a worker.
func WorkerStep(s engine.Step) bool {
	return strings.HasPrefix(s.Target, "container/") && s.Service != "" && !workshop.ReservedName(s.Service)
}

// Add takes a finished step.
func (c *Changes) Add(e engine.Event) {
	if e.Status != engine.StepDone || !WorkerStep(e.Step) {
		return
	}
	if c.done == nil {
		c.done, c.cause = map[string]map[engine.Op]bool{}, map[string]string{}
	}
	if c.done[e.Step.Service] == nil {
		c.done[e.Step.Service] = map[engine.Op]bool{}
		c.cause[e.Step.Service] = e.Step.Cause
	}
	c.done[e.Step.Service][e.Step.Op] = true
}

// Workers are those that steps were about.
func (c *Changes) Workers() []string { return slices.Sorted(maps.Keys(c.done)) }

// Whole reports whether what a worker has is to be said as a whole: it is new, or what
// changed doesn't say all that nobody was told (F14, K15 of the threat model).
func (c *Changes) Whole(worker string) bool {
	done := c.done[worker]
	return done[engine.OpCreateContainer] && !done[engine.OpRemoveContainer] || c.Granted[worker].Partial
}

// Text is what became of a worker: "created", "recreated (memory 2G → 1G)", "updated
// (network: + api.example.org)", "unchanged".
func (c *Changes) Text(worker string) string {
	done, granted := c.done[worker], c.Granted[worker]
	switch {
	case done[engine.OpCreateContainer] && done[engine.OpRemoveContainer]:
		return "recreated (" + granted.because(c.cause[worker], granted.Text) + ")"
	case done[engine.OpCreateContainer]:
		return "created"
	case done[engine.OpRemoveContainer]:
		return "removed"
	case done[engine.OpStopContainer] && done[engine.OpStartContainer]:
		return "restarted"
	case done[engine.OpStartContainer] && granted.Text != "":
		return "started (" + granted.Text + ")"
	case done[engine.OpStartContainer]:
		return "started"
	case done[engine.OpStopContainer]:
		return "stopped"
	case granted.Text != "":
		return "updated (" + granted.Text + ")"
	}
	return "unchanged"
}
