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
	done  map[string]map[engine.Op]bool
	cause map[string]string
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

// Text is what became of a worker: "created", "recreated (configuration changed)",
// "unchanged".
func (c *Changes) Text(worker string) string {
	done := c.done[worker]
	switch {
	case done[engine.OpCreateContainer] && done[engine.OpRemoveContainer]:
		return "recreated (" + c.cause[worker] + ")"
	case done[engine.OpCreateContainer]:
		return "created"
	case done[engine.OpRemoveContainer]:
		return "removed"
	case done[engine.OpStopContainer] && done[engine.OpStartContainer]:
		return "restarted"
	case done[engine.OpStartContainer]:
		return "started"
	case done[engine.OpStopContainer]:
		return "stopped"
	}
	return "unchanged"
}
