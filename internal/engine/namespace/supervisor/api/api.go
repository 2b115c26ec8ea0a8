// Package api is the protocol between a supervisor and its clients over the unix
// socket in the project's state directory: one JSON object a line, one request at a
// time on each of several connections. A descriptor is sent with the response's
// first byte (SCM_RIGHTS, unix(7)).
package api

import (
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// Names in a project's state directory.
const (
	SocketName = "supervisor.sock"
	StateName  = "state.json"
	LockName   = "supervisor.lock" // held by the supervisor as long as it lives
	ErrorsName = "supervisor.log"  // the supervisor's own output
	LogDir     = "log"             // log/SERVICE.log, see package logfile
	VolumeDir  = "volumes"         // volumes/NAME
	ResolvDir  = "resolv"          // a copy of the machine's resolv.conf, for the guard
	ResolvName = "resolv.conf"
)

// Moved is what a supervisor with --moved waits for on its stdin: its caller has moved
// it into the control group that it is to use.
const Moved = "moved\n"

// Operations.
const (
	OpHello    = "hello"    // → Hello
	OpList     = "list"     // → List
	OpCreate   = "create"   // Container; the service must not exist → Sum
	OpStart    = "start"    // Service; returns once its program is executed
	OpReady    = "ready"    // Service; waits until it is ready, failed or ended → Ready
	OpSignal   = "signal"   // Service, Signal: to the main process
	OpStop     = "stop"     // Service: SIGTERM, the grace, SIGKILL; waits; not restarted
	OpRemove   = "remove"   // Service: stops it if it runs, and removes it
	OpWait     = "wait"     // Service: waits until it has ended and isn't restarted, or is removed
	OpPid      = "pid"      // Service → response with a pidfd of the main process
	OpControl  = "control"  // Service if there are several guards → response with a connection to the guard's control
	OpShutdown = "shutdown" // stops everything and ends; containers stay recorded unless removed before
)

// MaxRequest bounds a request in bytes, its end of line included.
const MaxRequest = 4 << 20

// Request is one line of a client.
type Request struct {
	Op        string          `json:"op"`
	Service   string          `json:"service,omitempty"`
	Container *spec.Container `json:"container,omitempty"`
	Signal    string          `json:"signal,omitempty"` // "SIGTERM"
}

// Answer is one response line of the supervisor.
type Answer struct {
	Error *Error `json:"error,omitempty"`
	Hello *Hello `json:"hello,omitempty"`
	List  []Seen `json:"list,omitempty"`
	Ready *Ready `json:"ready,omitempty"`
	// Sum is the SHA-256 of the JSON of the container that the supervisor has from now on.
	Sum []byte `json:"sum,omitempty"`
	// FD: a descriptor is sent with the response.
	FD bool `json:"fd,omitempty"`
}

// Error is why a request failed.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Address and Worker are those of a port in use.
	Address string `json:"address,omitempty"`
	Worker  string `json:"worker,omitempty"`
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Code is a kind of error.
type Code string

// The codes.
const (
	CodeInvalid    Code = "invalid"     // the request is not valid
	CodeUnknown    Code = "unknown"     // no such service
	CodeExists     Code = "exists"      // the service exists
	CodeNotRunning Code = "not-running" // the service, or the one whose network it joins
	CodePortTaken  Code = "port-taken"
	CodeEnding     Code = "ending"  // the supervisor is
	CodeRefused    Code = "refused" // a promise can't be kept on this machine
	CodeFailed     Code = "failed"
)

// Hello identifies the supervisor.
type Hello struct {
	Version string `json:"version"` // SHA-256 of the program, in hex
	PID     int    `json:"pid"`     // in its own namespace: 1
	// Cgroup is the name of the cgroups that enforce the limits.
	Cgroup string `json:"cgroup,omitempty"`
}

// State is a container's state, named as by Docker.
type State string

// The states.
const (
	Created    State = "created"
	Running    State = "running"
	Restarting State = "restarting"
	Exited     State = "exited"
)

// Seen is the current state of one container.
type Seen struct {
	Container spec.Container `json:"container"`
	State     State          `json:"state"`
	Ready     bool           `json:"ready"`
	ExitCode  int            `json:"exit_code"`
	OOMKilled bool           `json:"oom_killed,omitempty"`
	Created   time.Time      `json:"created"`
	Started   time.Time      `json:"started,omitzero"`
	Finished  time.Time      `json:"finished,omitzero"`
	Restarts  int            `json:"restarts,omitempty"`
	// Joined is the start time of the container whose network namespace it joined;
	// if that container now has another, the namespace no longer exists.
	Joined time.Time `json:"joined,omitzero"`
}

// Ready is the result of a start.
type Ready struct {
	Ready    bool   `json:"ready"`
	Reason   string `json:"reason,omitempty"` // of its FAILED line
	Stderr   string `json:"stderr,omitempty"` // the end of its output
	Ended    bool   `json:"ended,omitempty"`
	ExitCode int    `json:"exit_code,omitempty"`
	OOM      bool   `json:"oom_killed,omitempty"`
	// Notes are those of its NOTE lines.
	Notes []string `json:"notes,omitempty"`
	// Made is what the container says of itself (package made), of its MADE line.
	Made string `json:"made,omitempty"`
	// Started is the time of the start that the rest is of, as in [Seen].
	Started time.Time `json:"started,omitzero"`
}

// File is the format of state.json, which a supervisor writes at every change and
// the next one loads. Without a live supervisor nothing in it runs.
type File struct {
	Version    int    `json:"version"` // spec.Version
	Containers []Seen `json:"containers"`
	// Cgroup is the prefix of the names of groups, and CgroupDirs their
	// directories, for cleaning up after a killed supervisor.
	Cgroup     string   `json:"cgroup,omitempty"`
	CgroupDirs []string `json:"cgroup_dirs,omitempty"`
	// Limits: all limits of its containers can be enforced (B5).
	Limits bool `json:"limits"`
}
