package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/diagtext"
)

// ForeignError means that objects with the project's name belong to another
// project directory, or not to a workshop. It is a refusal (exit code 4): nothing
// was touched.
type ForeignError struct {
	Project   string
	Object    string // the first object found, "container/x"; empty with Workshop
	Directory string // the caller's project directory
	Other     string // the directory that it belongs to; empty if unknown
	Workshop  bool   // it belongs to a workshop
	Suggest   string // a project name to use with -p
}

// Error names the owner of the objects, and what to do.
func (e *ForeignError) Error() string {
	if !e.Workshop {
		return fmt.Sprintf("%s: use -p %s here", e.What(), e.Suggest)
	}
	return fmt.Sprintf("%s: use -p %s here, or run `workshop down` there", e.What(), e.Suggest)
}

// What names the owner of the objects. A worker may have made the directories, with any
// name.
func (e *ForeignError) What() string {
	object, other := diagtext.Printable(e.Object), diagtext.Printable(e.Other)
	switch {
	case e.Workshop:
		return fmt.Sprintf("project %s belongs to %s, not to %s", e.Project, other, diagtext.Printable(e.Directory))
	case e.Other != "":
		return fmt.Sprintf("project %s belongs to a Compose project of %s (%s), which is not a workshop", e.Project, other, object)
	}
	return fmt.Sprintf("%s has the name of project %s and doesn't belong to a workshop", object, e.Project)
}

// ExitCode is 4: refused.
func (e *ForeignError) ExitCode() int { return 4 }

// UnknownWorkerError means that the workshop has no workers of these names.
type UnknownWorkerError struct{ Names, Have []string }

// Error names them and the existing ones.
func (e *UnknownWorkerError) Error() string {
	return fmt.Sprintf("no worker %s in this workshop: it has %s", strings.Join(e.Names, ", "), strings.Join(e.Have, ", "))
}

// ExitCode is 2: usage.
func (e *UnknownWorkerError) ExitCode() int { return 2 }

// NotRunningError means that services of a project have no running container.
type NotRunningError struct {
	Project  string
	Services []string
	State    string // of the one service, empty if there is no container
	Why      string // it ended ([Container.WhyEnded]); empty if unknown
}

// Error has the remedy.
func (e *NotRunningError) Error() string {
	state := "missing"
	if e.State != "" {
		state = e.State
	}
	if e.Why != "" {
		state += ": " + e.Why
	}
	return fmt.Sprintf("%s of project %q is %s: run `workshop up`", strings.Join(e.Services, ", "), e.Project, state)
}

// ExitCode is 5: engine.
func (e *NotRunningError) ExitCode() int { return 5 }

// NoToolboxError means that a worker's workshop-init doesn't support sessions:
// another version of workshop created it.
type NoToolboxError struct{ Worker string }

// Error has the remedy.
func (e *NoToolboxError) Error() string {
	return fmt.Sprintf("worker %s was created by an older workshop and has no toolbox: run `workshop up`", e.Worker)
}

// ExitCode is 5: engine.
func (e *NoToolboxError) ExitCode() int { return 5 }

// MissingImageError means that an image is not on the engine and may not be
// pulled.
type MissingImageError struct{ Image, Service string }

// Error has the remedy.
func (e *MissingImageError) Error() string {
	return fmt.Sprintf("image %s of %s is not on this engine, and pull is never: build or load it, or set pull: missing", e.Image, e.Service)
}

// ExitCode is 5: engine.
func (e *MissingImageError) ExitCode() int { return 5 }

// LockedImageError means that the engine has an image of the tag, but not the one with
// the digest: it isn't replaced, as somebody may have built it there.
type LockedImageError struct{ Image, Tag, Service string }

// Error has the remedy.
func (e *LockedImageError) Error() string {
	return fmt.Sprintf("%s on this engine is another image than the digest of %s says (B46): run `docker pull %s`", e.Tag, e.Service, e.Image)
}

// ExitCode is 4: refused.
func (e *LockedImageError) ExitCode() int { return 4 }

// PortTakenError means that something else listens on a port that a worker
// publishes.
type PortTakenError struct {
	Address string // host:port
	Port    string
	Worker  string
	// Target is the worker's port if workshop.yaml leaves the other one open: the
	// number is a lease of this machine's. 0: the file has the number.
	Target uint16
	By     string // ": NAME", the program that has it; empty: it isn't seen
	Err    error  // the engine's
}

// PortTaken is the error about a published port of a project.
func PortTaken(c *compose.Compiled, address, port string, err error) *PortTakenError {
	k := c.PublisherOf(port)
	e := &PortTakenError{Address: address, Port: port, Worker: k.Worker, Err: err}
	if p := c.Port(k); p != nil && p.Auto() {
		e.Target = k.Target
	}
	return e
}

// Error has the remedy.
func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %s, which %s publishes, is taken by another program or container: stop that, or publish another port under `ports`", e.Address, e.Worker)
}

// Unwrap returns the engine's error.
func (e *PortTakenError) Unwrap() error { return e.Err }

// ExitCode is 5: engine.
func (e *PortTakenError) ExitCode() int { return 5 }

// SilentGuardError means that a guard runs but doesn't respond.
type SilentGuardError struct {
	Container string // "container/x"
	After     time.Duration
}

// Error has the time waited.
func (e *SilentGuardError) Error() string {
	return fmt.Sprintf("%s: the guard doesn't answer after %s", e.Container, e.After)
}

// ExitCode is 1: failed.
func (e *SilentGuardError) ExitCode() int { return 1 }

// NotReadyError means that a container didn't become ready, with the reason it
// printed, if any.
type NotReadyError struct {
	Service string
	Reason  string // of the FAILED line
	Stderr  string // the end of its output
}

// Error returns the reason.
func (e *NotReadyError) Error() string {
	msg := e.Reason
	if e.Stderr != "" {
		msg += ": " + e.Stderr
	}
	return msg
}

// ExitCode is 1: failed.
func (e *NotReadyError) ExitCode() int { return 1 }

// RefusedError means that an engine refuses a project that it can't run without
// breaking a promise or doing what it never does. Nothing was started.
type RefusedError struct {
	Promise string // the one that can't be kept: "B4"; empty: none is concerned
	Reason  string
	Do      string // what to do
}

// Error returns the reason with the promise's number, and what to do.
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

// SilentError means that the engine doesn't respond to requests about a container.
type SilentError struct{ Container string }

// Error has the likely cause, and what to do.
func (e *SilentError) Error() string {
	return fmt.Sprintf("the engine doesn't respond about container %s: it may be waiting for a stopped process of `docker exec`; `workshop down` ends it", e.Container)
}

// ExitCode is 5: engine.
func (e *SilentError) ExitCode() int { return 5 }
