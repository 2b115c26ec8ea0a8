// Package api is what a supervisor and its clients say to each other over the
// unix socket in the project's state directory: one JSON object a line each
// way, one request at a time on a connection, several connections. Where an
// answer carries a descriptor, it comes with the answer's first byte
// (SCM_RIGHTS, unix(7)).
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
	ErrorsName = "supervisor.log"  // what it printed itself
	LogDir     = "log"             // log/SERVICE.log, see package logfile
	VolumeDir  = "volumes"         // volumes/NAME
	ResolvDir  = "resolv"          // a copy of the machine's resolv.conf, for the guard
	ResolvName = "resolv.conf"
)

// Operations.
const (
	OpHello    = "hello"    // → Hello
	OpList     = "list"     // → List
	OpCreate   = "create"   // Container; the service must not exist
	OpStart    = "start"    // Service; returns when its program was executed
	OpReady    = "ready"    // Service; waits until it is ready, failed or ended → Ready
	OpSignal   = "signal"   // Service, Signal: to the main process
	OpStop     = "stop"     // Service: SIGTERM, the grace, SIGKILL; waits; not restarted
	OpRemove   = "remove"   // Service: stops it if it runs, and forgets it
	OpPid      = "pid"      // Service → answer with a pidfd of the main process
	OpControl  = "control"  // Service if there are several guards → answer with a connection to the guard's control
	OpShutdown = "shutdown" // stops everything and ends; containers that are left are forgotten only with Remove before
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

// Answer is one line of the supervisor.
type Answer struct {
	Error *Error `json:"error,omitempty"`
	Hello *Hello `json:"hello,omitempty"`
	List  []Seen `json:"list,omitempty"`
	Ready *Ready `json:"ready,omitempty"`
	// FD says that a descriptor comes along.
	FD bool `json:"fd,omitempty"`
}

// Error is why a request was not carried out.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Address and Worker are those of a port that is taken.
	Address string `json:"address,omitempty"`
	Worker  string `json:"worker,omitempty"`
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Code is a kind of error.
type Code string

// The codes.
const (
	CodeInvalid    Code = "invalid"     // the request makes no sense
	CodeUnknown    Code = "unknown"     // no such service
	CodeExists     Code = "exists"      // the service exists
	CodeNotRunning Code = "not-running" // the service, or the one whose network it joins
	CodePortTaken  Code = "port-taken"
	CodeEnding     Code = "ending"  // the supervisor is
	CodeRefused    Code = "refused" // a promise can't be kept on this machine
	CodeFailed     Code = "failed"
)

// Hello says who answers.
type Hello struct {
	Version string `json:"version"` // SHA-256 of the program, in hex
	PID     int    `json:"pid"`     // in its own namespace: 1
	// Limits are enforced by cgroups here; what they are called.
	Cgroup string `json:"cgroup,omitempty"`
}

// State is a container's, in Docker's words.
type State string

// The states.
const (
	Created    State = "created"
	Running    State = "running"
	Restarting State = "restarting"
	Exited     State = "exited"
)

// Seen is one container as it is.
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
	// Joined is when the container whose network namespace it joined was
	// started; another time than that container's now: it is gone.
	Joined time.Time `json:"joined,omitzero"`
}

// Ready is how a start went.
type Ready struct {
	Ready    bool   `json:"ready"`
	Reason   string `json:"reason,omitempty"` // of its FAILED line
	Stderr   string `json:"stderr,omitempty"` // its last words
	Ended    bool   `json:"ended,omitempty"`
	ExitCode int    `json:"exit_code,omitempty"`
	OOM      bool   `json:"oom_killed,omitempty"`
}

// File is the form of state.json: what a supervisor writes whenever something
// changes, and what the next one begins with. Nothing that it says runs does,
// unless a supervisor answers.
type File struct {
	Version    int    `json:"version"` // spec.Version
	Containers []Seen `json:"containers"`
	// Cgroup is what the names of the groups begin with, and CgroupDirs where they
	// are, for whoever cleans up after a supervisor that was killed.
	Cgroup     string   `json:"cgroup,omitempty"`
	CgroupDirs []string `json:"cgroup_dirs,omitempty"`
	// Limits says that all limits of what it starts can be enforced (B5).
	Limits bool `json:"limits"`
}
