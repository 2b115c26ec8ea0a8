// Package engine is what every engine has in common: what it can enforce, what
// is observed of a workshop, and the plan that turns one into the other.
//
// Planning is pure. An engine carries out one step at a time and decides
// nothing.
package engine

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/llmdo/workshop/compose"
	toolbox "github.com/llmdo/workshop/internal/toolbox/client"
)

// Engine carries out compiled projects. Implementations are safe for use by
// several goroutines.
type Engine interface {
	// Capabilities are the same on every machine, and cost nothing.
	Capabilities() Capabilities
	// Ping returns nil when the engine answers. It costs no more than that.
	Ping(ctx context.Context) error
	// Info asks the engine what it is and what it can enforce.
	Info(ctx context.Context) (Info, error)
	// InitNames gives the image and the volume by which containers get
	// workshop-init; empty where there are none.
	InitNames(ctx context.Context) (image, volume string, err error)
	// Check refuses a project with facts that this engine can't carry out on this
	// machine, before anything is pulled or started.
	Check(ctx context.Context, c *compose.Compiled) error
	// CanLearn returns why no room can learn on this machine; nil: rooms can.
	CanLearn() error
	// Observe returns what exists of the project, and which of the given image
	// references exist ([DesiredImages]). With images it is for a plan, and also
	// reads which policy the guard has ([Observed.PolicyDigest]).
	Observe(ctx context.Context, project string, images ...string) (Observed, error)
	// Apply carries out the plan, reporting each step to events (which may be
	// nil). It stops at the first error; what it has done is left for the
	// next Observe to see.
	Apply(ctx context.Context, p *Plan, events func(Event)) error
	// Exec runs a command in a worker and returns its exit code.
	Exec(ctx context.Context, project, service string, o ExecOptions) (int, error)
	// Logs writes the logs of services (all if empty).
	Logs(ctx context.Context, project string, services []string, o LogsOptions) error
	// CopyTo and CopyFrom move a tar stream into or out of a worker's directory.
	CopyTo(ctx context.Context, project, service, dir string, tar io.Reader) error
	CopyFrom(ctx context.Context, project, service, path string) (io.ReadCloser, error)
	// Control connects to the control socket of the project's guard (package
	// internal/guard/control). A guard that doesn't run is a [NotRunningError].
	// dir as in [ExecOptions].
	Control(ctx context.Context, project, dir string) (io.ReadWriteCloser, error)
	// Session connects to the toolbox of a worker (package internal/toolbox): a
	// new session, which ends with the connection. ctx bounds the connecting
	// alone. A worker that doesn't run is a [NotRunningError]; one whose program
	// knows no sessions, at the first read at the latest, a [NoToolboxError]. dir
	// as in [ExecOptions].
	Session(ctx context.Context, project, service, dir string) (io.ReadWriteCloser, error)
	// Tidy removes what the engine keeps for a project beside its containers, where
	// nothing of the project is left. Another directory's is not touched; the empty
	// directory means any.
	Tidy(ctx context.Context, project, directory string) error
	Close() error
}

// Info describes an engine.
type Info struct {
	Kind       string // "docker", "namespace", "process"
	Endpoint   string // how it is reached, for messages
	Version    string
	APIVersion string
	OS, Arch   string // of the engine; Arch as GOARCH
	Local      bool   // it sees this machine's files (unix socket, not in a VM)
	DataRoot   string
	Runtimes   []string
	// DefaultRuntime is the OCI runtime of containers that name none.
	DefaultRuntime string
	Socket         string // path of its unix socket, if it has one
	IPv6           bool   // the kernel has IPv6
	Limits         Limits
	// Unlimited says that the user chose to go on without the limits that are
	// missing (--without-limits).
	Unlimited bool
	// Own are directories of the engine's own on this machine, which nobody may
	// mount, nor anything in them.
	Own []string
	// Findings are what it found on this machine about promises, beside Limits.
	Findings []Finding
}

// Finding is one thing that decides on this machine whether a promise can be
// kept.
type Finding struct {
	Promise string // "B22"; empty: none hangs on it
	Name    string // a word: "user-namespaces"
	Held    bool
	Meaning string // what holds with it, or, where it isn't held, why
	Do      string // where it isn't held: what to do; may be empty
	// Rooms says that it matters to workers with a room alone.
	Rooms bool
}

// Limits tells which resource limits the engine can enforce (B5).
type Limits struct{ Memory, Swap, CPU, PIDs, Seccomp bool }

// Observed is one snapshot of what exists of a project.
type Observed struct {
	Project    string
	Containers []Container
	Networks   []Object
	Volumes    []Object
	// Others carry the project's name and are no workshop's.
	Others []Other
	// WorkersOnly says that the engine has neither rooms nor a guard: plans are
	// made for the workers alone.
	WorkersOnly bool
	// Images says which of the asked references exist, with their IDs.
	Images map[string]string
	// PolicyDigest is the digest of the policy file that a guard of this project
	// starts with (firewall.EncodePolicy, SHA-256, hexadecimal); empty where
	// there is none, it can't be read, or no images were asked for.
	PolicyDigest string
}

// Object is a network or volume.
type Object struct {
	ID     string // of a network; volumes have none
	Name   string
	Labels map[string]string
}

// WithObject puts an object into a list, in the place of one of its name.
func WithObject(list []Object, o Object) []Object { return append(WithoutObject(list, o.Name), o) }

// WithoutObject takes an object out of a list.
func WithoutObject(list []Object, name string) []Object {
	return slices.DeleteFunc(list, func(o Object) bool { return o.Name == name })
}

// Container is one container of a project.
type Container struct {
	ID         string
	Name       string
	Service    string
	Role       string // of LabelRole; only for display, never for a decision on the boundary
	Image      string
	ImageID    string
	ConfigHash string
	State      string // created, running, exited …
	ExitCode   int
	Started    time.Time
	Directory  string // project directory that it belongs to
	ByCompose  bool   // made by a Compose program from the generated files
	Ports      []string
	// NetworkOf is the ID of the container whose network namespace it joins.
	NetworkOf string
	// Networks are the names of the networks that it is attached to, NetworkIDs
	// the IDs of those that it has had since it was started.
	Networks, NetworkIDs []string
	// Volumes are the names of the volumes that it mounts, where an engine tells.
	Volumes []string
	// NotHeld are the promises that the user gave up for it when it was made: B5
	// by --without-limits.
	NotHeld []string
	// OneOff is a container of `docker compose run`, or a helper.
	OneOff bool
	// Silent says that the engine lists it, and doesn't answer for it
	// ([SilentError]).
	Silent bool
	// Helper is a never started container through which volumes are filled;
	// one that is seen was left by an interrupted run.
	Helper bool
}

// Event reports one step while it is carried out.
type Event struct {
	Step           Step
	Status         Status
	Detail         string // progress of a pull or build, a container's FAILED line
	Err            error
	Current, Total int64 // bytes, where known
}

// Status of a step.
type Status int

// The states of a step.
const (
	StepStarted Status = iota + 1
	StepProgress
	StepDone
	StepFailed
)

// ExecOptions is one command in a worker.
type ExecOptions struct {
	Command []string
	Env     []string // KEY=VALUE, added to the container's
	Workdir string   // empty: the worker's; relative: to that one
	User    string   // empty: the worker's
	// Directory refuses a worker of another project directory with a
	// [ForeignError]; empty: any.
	Directory string
	TTY       bool
	Stdin     io.Reader // nil: no stdin
	Stdout    io.Writer
	Stderr    io.Writer // with TTY everything goes to Stdout
	// Size returns the terminal's size; Resized is signalled when it changed.
	Size    func() (rows, cols uint, ok bool)
	Resized <-chan struct{}
	// Signals are forwarded to the command's process by name ("SIGINT").
	Signals <-chan string
}

// ToolboxCommand is what a session of the worker is asked to run. User and
// Directory are not in it: an engine checks them before.
func (o *ExecOptions) ToolboxCommand() toolbox.Command {
	return toolbox.Command{
		Argv: o.Command, Env: o.Env, Cwd: o.Workdir, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Signals: o.Signals,
		TTY: o.TTY, Size: o.Size, Resized: o.Resized,
	}
}

// LogsOptions says which part of the logs is wanted.
type LogsOptions struct {
	Follow     bool
	Timestamps bool
	Tail       string // number of lines or "all"
	Since      string
	Stdout     io.Writer
	Stderr     io.Writer
	Prefix     bool // "service | " before each line
}

// Desired is what a plan starts from.
type Desired struct {
	Compiled *compose.Compiled // with facts
	// Only names the workers that are wanted; empty: all.
	Only []string
	// NoWorkers says that none is wanted, Only aside: those that run stay as they
	// are, unless they are in another room than theirs.
	NoWorkers bool
	// Builds gives for a service with a build section the hash of its context
	// and options; it names the image that is built. An engine computes it.
	Builds map[string]string
	// Pulled says that images with pull policy "always" were pulled by the
	// plan of [PlanPull] before this one.
	Pulled bool
}
