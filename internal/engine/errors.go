package engine

import (
	"fmt"
	"strings"
	"time"
)

// ForeignError says that objects with the project's name belong to another
// project directory, or are no workshop's. It is a refusal (exit code 4): nothing
// was touched.
type ForeignError struct {
	Project   string
	Object    string // the first object found, "container/x"
	Directory string // where we are
	Other     string // the directory that it belongs to; empty where it names none
	Workshop  bool   // it is a workshop's
	Suggest   string // a project name to use with -p
}

// Error says whose the objects are and what to do.
func (e *ForeignError) Error() string {
	if !e.Workshop {
		return fmt.Sprintf("%s: use -p %s here", e.What(), e.Suggest)
	}
	return fmt.Sprintf("%s: use -p %s here, or run `workshop down` there", e.What(), e.Suggest)
}

// What says whose the objects are.
func (e *ForeignError) What() string {
	switch {
	case e.Workshop:
		return fmt.Sprintf("project %s belongs to %s (%s), not to %s", e.Project, e.Other, e.Object, e.Directory)
	case e.Other != "":
		return fmt.Sprintf("project %s belongs to a Compose project of %s (%s), which is not a workshop", e.Project, e.Other, e.Object)
	}
	return fmt.Sprintf("%s has the name of project %s and doesn't belong to a workshop", e.Object, e.Project)
}

// ExitCode is 4: refused.
func (e *ForeignError) ExitCode() int { return 4 }

// UnknownWorkerError names workers that the workshop does not have.
type UnknownWorkerError struct{ Names, Have []string }

// Error names them and the ones that there are.
func (e *UnknownWorkerError) Error() string {
	return fmt.Sprintf("no worker %s in this workshop: it has %s", strings.Join(e.Names, ", "), strings.Join(e.Have, ", "))
}

// ExitCode is 2: usage.
func (e *UnknownWorkerError) ExitCode() int { return 2 }

// NotRunningError says that services of a project have no container that runs.
type NotRunningError struct {
	Project  string
	Services []string
	State    string // of the one service, empty if there is no container
}

// Error says what to do.
func (e *NotRunningError) Error() string {
	state := "not there"
	if e.State != "" {
		state = e.State
	}
	return fmt.Sprintf("%s of project %q is %s: run `workshop up`", strings.Join(e.Services, ", "), e.Project, state)
}

// ExitCode is 5: engine.
func (e *NotRunningError) ExitCode() int { return 5 }

// NoToolboxError says that a worker's workshop-init knows no sessions: another
// version of workshop brought it up.
type NoToolboxError struct{ Worker string }

// Error says what to do.
func (e *NoToolboxError) Error() string {
	return fmt.Sprintf("worker %s was brought up by an older workshop, whose program there has no tools: run `workshop up`", e.Worker)
}

// ExitCode is 5: engine.
func (e *NoToolboxError) ExitCode() int { return 5 }

// MissingImageError says that an image is not on the engine and may not be
// pulled.
type MissingImageError struct{ Image, Service string }

// Error says what to do.
func (e *MissingImageError) Error() string {
	return fmt.Sprintf("image %s of %s is not on this engine, and pull is never: build or load it, or set pull: missing", e.Image, e.Service)
}

// ExitCode is 5: engine.
func (e *MissingImageError) ExitCode() int { return 5 }

// PortTakenError says that something else listens on a port that a worker
// publishes.
type PortTakenError struct {
	Address string // host:port
	Port    string
	Worker  string
	Err     error // the engine's
}

// Error says what to do.
func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %s, which %s publishes, is taken by another program or container: stop that, or publish another port under `ports`", e.Address, e.Worker)
}

// Unwrap gives the engine's error.
func (e *PortTakenError) Unwrap() error { return e.Err }

// ExitCode is 5: engine.
func (e *PortTakenError) ExitCode() int { return 5 }

// SilentGuardError says that a guard runs and doesn't answer.
type SilentGuardError struct {
	Container string // "container/x"
	After     time.Duration
}

// Error says how long it was waited for.
func (e *SilentGuardError) Error() string {
	return fmt.Sprintf("%s: the guard doesn't answer after %s", e.Container, e.After)
}

// ExitCode is 1: failed.
func (e *SilentGuardError) ExitCode() int { return 1 }

// NotReadyError says why a container is not ready, in its own words if it had
// some.
type NotReadyError struct {
	Service string
	Reason  string // of the FAILED line
	Stderr  string // its last words
}

// Error is the reason.
func (e *NotReadyError) Error() string {
	msg := e.Reason
	if e.Stderr != "" {
		msg += ": " + e.Stderr
	}
	return msg
}

// ExitCode is 1: failed.
func (e *NotReadyError) ExitCode() int { return 1 }

// RefusedError says that an engine can't carry a project out as it is: what it
// would have to do, or give up, it doesn't. Nothing was started.
type RefusedError struct {
	Promise string // the one that can't be kept: "B4"; empty: none hangs on it
	Reason  string
	Do      string // what to do
}

// Error is the reason with the promise's number, and what to do.
func (e *RefusedError) Error() string {
	msg := e.Reason
	if e.Promise != "" {
		msg += " (" + e.Promise + ")"
	}
	if e.Do != "" {
		msg += ": " + e.Do
	}
	return msg
}

// ExitCode is 4: refused.
func (e *RefusedError) ExitCode() int { return 4 }

// SilentError says that the engine doesn't answer for a container.
type SilentError struct{ Container string }

// Error says why that may be, and what to do.
func (e *SilentError) Error() string {
	return fmt.Sprintf("the engine doesn't answer for container %s: it may wait for a process that it started there (`docker exec`) and that was stopped; `workshop down` ends it", e.Container)
}

// ExitCode is 5: engine.
func (e *SilentError) ExitCode() int { return 5 }
