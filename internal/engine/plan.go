package engine

import "github.com/llmdo/workshop/compose"

// Plan is an ordered graph of steps. Its String is deterministic and is what
// `up --dry-run` prints.
type Plan struct {
	Project  string
	Compiled *compose.Compiled // nil for down
	Steps    []Step
}

// Step is one call to the engine.
type Step struct {
	ID    int
	After []int // IDs of the steps that must be done before
	Op    Op
	// Target is the object's name: "container/code-reviewer", "network/default".
	Target string
	// Cause says why: "not found", "configuration changed", "room is recreated".
	Cause string
	// Service is the compose service for container steps.
	Service string
	// ID of the existing object for steps that remove, stop or start one.
	ObjectID string
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
	OpWaitReady       Op = 10 // the READY line of room, guard or gate
	OpStopContainer   Op = 11
	OpRemoveContainer Op = 12
	OpRemoveNetwork   Op = 13
	OpRemoveVolume    Op = 14
)
