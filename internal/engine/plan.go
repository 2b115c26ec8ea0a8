package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
)

// Plan is an ordered graph of steps. Its String is deterministic and is what
// `up --dry-run` prints.
type Plan struct {
	Project  string
	Compiled *compose.Compiled // nil for down
	Steps    []Step
	// WaitTimeout bounds the time from each container's start until it is ready;
	// 0: only the context does.
	WaitTimeout time.Duration
	// ReloadTimeout bounds the time until a running guard has its new policy; 0, or
	// more than 15 seconds: 15 seconds.
	ReloadTimeout time.Duration
	// Desired is the state that the plan leads to; zero for down.
	Desired Desired
	// Observed is the snapshot that it starts from.
	Observed Observed
}

// Empty reports whether the plan changes nothing: it has checks only.
func (p *Plan) Empty() bool {
	for _, s := range p.Steps {
		if !s.onlyLooks() {
			return false
		}
	}
	return true
}

// OnlyStarts reports whether the plan at most starts containers as they are.
func (p *Plan) OnlyStarts() bool {
	q := *p
	q.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool { return s.Op == OpStartContainer })
	return q.Empty()
}

// Starts reports whether the plan starts the container of a service.
func (p *Plan) Starts(service string) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Op == OpStartContainer && s.Service == service })
}

// onlyLooks reports whether a step is a check and changes nothing.
func (s Step) onlyLooks() bool {
	return s.Op == OpFillTools || s.Op == OpWaitReady || s.Op == OpCheckPort
}

// String returns one line per step: the steps it waits for, its number, target,
// operation and cause.
func (p *Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// String returns the step as in "[1 2] -> #3 container/guard: create (not found)".
func (s Step) String() string {
	return fmt.Sprintf("%v -> #%d %s: %s (%s)", s.After, s.ID, s.Target, s.Op, s.Cause)
}

// Step is one call to the engine.
type Step struct {
	ID    int
	After []int // IDs of the steps that must be done first
	Op    Op
	// Target is the object's name: "container/code-reviewer", "network/default".
	Target string
	// Cause is the reason: "not found", "configuration changed", "its room is recreated".
	Cause string
	// Service is the compose service for container steps.
	Service string
	// ID of the existing object for steps that remove, stop, start or reload one.
	ObjectID string
	// Key is the key of a network or volume in the project; the reference of
	// an image.
	Key string
}

// Op is the kind of a step.
type Op int

// The operations. Numbers are stable.
const (
	OpLoadInit        Op = 1 // load the workshop-init image if its ID is missing
	OpFillTools       Op = 2 // create, fill and verify the tool volume
	OpPullImage       Op = 3
	OpBuildImage      Op = 4
	OpCreateNetwork   Op = 5
	OpCreateVolume    Op = 6
	OpFillVolume      Op = 7 // policy or a read-only copy
	OpCreateContainer Op = 8
	OpStartContainer  Op = 9
	OpWaitReady       Op = 10 // the READY line of a room, guard or worker
	OpStopContainer   Op = 11
	OpRemoveContainer Op = 12
	OpRemoveNetwork   Op = 13
	OpRemoveVolume    Op = 14
	OpReloadPolicy    Op = 15 // send the running guard a new policy, then fill its volume
	OpCheckPort       Op = 16 // check that no other program of this machine listens on a published port
)

var opNames = map[Op]string{
	OpLoadInit: "load", OpFillTools: "verify or fill", OpPullImage: "pull", OpBuildImage: "build",
	OpCreateNetwork: "create", OpCreateVolume: "create", OpFillVolume: "fill",
	OpCreateContainer: "create", OpStartContainer: "start", OpWaitReady: "wait until ready",
	OpReloadPolicy: "reload", OpCheckPort: "check",
	OpStopContainer: "stop", OpRemoveContainer: "remove", OpRemoveNetwork: "remove", OpRemoveVolume: "remove",
}

// String returns the operation as a verb.
func (o Op) String() string {
	if s, ok := opNames[o]; ok {
		return s
	}
	return fmt.Sprintf("op %d", int(o))
}
