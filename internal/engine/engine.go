// Package engine has what all engines share: their interface, the observed state
// of a workshop, and the planner that computes the steps to the desired state.
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
	"github.com/llmdo/workshop/internal/promise"
	toolbox "github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
)

// Engine carries out compiled projects. Implementations are safe for use by
// several goroutines.
type Engine interface {
	// Capabilities returns data that doesn't depend on the machine.
	Capabilities() Capabilities
	// Ping returns nil if the engine responds. It does nothing else.
	Ping(ctx context.Context) error
	// Info describes the engine and what it can enforce on this machine.
	Info(ctx context.Context) (Info, error)
	// InitNames returns the names of the image and the volume with workshop-init;
	// empty if the engine has none.
	InitNames(ctx context.Context) (image, volume string, err error)
	// Check refuses a project with facts that this engine can't run on this
	// machine, before anything is pulled or started.
	Check(ctx context.Context, c *compose.Compiled) error
	// CanLearn returns nil if rooms can learn on this machine, else why not.
	CanLearn() error
	// Begin says that a plan for the project will be applied soon: what that needs and
	// is no step may be started in the background. Apply starts what is missing, Tidy
	// removes it.
	Begin(project string)
	// Observe returns the existing objects of the project, and which of the given
	// image references exist ([DesiredImages]). With images, for a plan, it also
	// reads which policy the guard has ([Observed.PolicyDigest]).
	Observe(ctx context.Context, project string, images ...string) (Observed, error)
	// Apply carries out the plan and reports each step to events, which may be
	// nil. It stops at the first error and rolls nothing back.
	Apply(ctx context.Context, p *Plan, events func(Event)) error
	// Exec runs a command in a worker and returns its exit code.
	Exec(ctx context.Context, project, service string, o ExecOptions) (int, error)
	// Logs writes the logs of services (all if empty).
	Logs(ctx context.Context, project string, services []string, o LogsOptions) error
	// CopyTo and CopyFrom copy a tar stream into or out of a worker's directory.
	CopyTo(ctx context.Context, project, service, dir string, tar io.Reader) error
	CopyFrom(ctx context.Context, project, service, path string) (io.ReadCloser, error)
	// Control connects to the control socket of the project's guard (package
	// internal/guard/control). If the guard isn't running, the error is a
	// [NotRunningError]. dir is [ExecOptions].Directory.
	Control(ctx context.Context, project, dir string) (io.ReadWriteCloser, error)
	// Session starts a session of a worker's toolbox (package internal/toolbox),
	// which ends with the connection. ctx bounds only connecting. If the worker
	// isn't running, the error is a [NotRunningError]; if its workshop-init doesn't
	// support sessions, it is a [NoToolboxError], at the first read at the latest.
	// dir is [ExecOptions].Directory.
	Session(ctx context.Context, project, service, dir string) (io.ReadWriteCloser, error)
	// Crash ends the main process of a room or guard as a fault of its own would: a
	// restart policy applies. dir is [ExecOptions].Directory.
	Crash(ctx context.Context, project, service, dir string) error
	// Caches returns the caches of all projects that the caller can reach; with sizes
	// they are measured, which takes long for many files.
	Caches(ctx context.Context, sizes bool) ([]Cache, error)
	// RemoveCache removes a cache. If a container has it, the error is a
	// [ConflictError].
	RemoveCache(ctx context.Context, c Cache) error
	// List returns the projects that the engine has anything of, of all users that share
	// it. It returns those that it can read together with an error about others.
	List(ctx context.Context) ([]Listed, error)
	// Wait waits until a service of the project doesn't run, and returns its exit code;
	// a restarted one runs. It returns at once if the service has ended. Without a
	// container the error is a [NotRunningError]. dir is [ExecOptions].Directory.
	Wait(ctx context.Context, project, service, dir string) (int, error)
	// Witness returns what the engine and the machine know of a running container of the
	// project; the caller closes it. Without one the error is a [NotRunningError]. dir is
	// [ExecOptions].Directory.
	Witness(ctx context.Context, project, service, dir string) (Witness, error)
	// Leftovers returns what no container uses, of all users that share the engine.
	Leftovers(ctx context.Context) ([]Leftover, error)
	// RemoveLeftover removes it. If something uses it now, the error is a
	// [ConflictError].
	RemoveLeftover(ctx context.Context, l Leftover) error
	// Tidy removes the engine's other files of a project, if no object of it is
	// left. It doesn't touch those of another directory; "" means any.
	Tidy(ctx context.Context, project, directory string) error
	Close() error
}

// Info describes an engine.
type Info struct {
	Kind string // "docker", "podman", "namespace", "process"
	// Flavour is whose program answers Docker's API; empty for engines that don't speak it.
	Flavour  Flavour
	Endpoint string // how it is reached, for messages
	// Context is the docker context that named the endpoint, if one did.
	Context string
	// ID is what the engine is known by wherever it is reached; empty for one that has none.
	ID         string
	Version    string
	APIVersion string
	OS, Arch   string // of the engine; Arch as GOARCH
	Local      bool   // it sees this machine's files (unix socket, not in a VM)
	DataRoot   string
	Runtimes   []string
	// DefaultRuntime is the OCI runtime of containers without `runtime`.
	DefaultRuntime string
	Socket         string // path of its unix socket, if it has one
	IPv6           bool   // the kernel has IPv6
	Limits         Limits
	// Unlimited: the user accepts that limits are missing (--without-limits).
	Unlimited bool
	// Own are the engine's own directories on this machine. Neither they nor
	// anything in them may be mounted.
	Own []string
	// Daemon is what a Docker engine says of how it is set up.
	Daemon Daemon
	// NoCompose says why plain Compose can't run the generated files on it; empty: it can,
	// where [Capabilities] say so.
	NoCompose string
	// Findings are what it found on this machine about promises, besides Limits.
	Findings []Finding
}

// Flavour is a program that answers Docker's API.
type Flavour string

// The flavours that are known.
const (
	FlavourDocker Flavour = promise.Docker
	FlavourPodman Flavour = promise.Podman
)

// Daemon is how the daemon of an engine is set up.
type Daemon struct {
	OperatingSystem string // "Debian GNU/Linux 12 (bookworm)"
	CgroupVersion   string // "1" or "2"
	CgroupDriver    string // "systemd" or "cgroupfs"
	Rootless        bool
	// UIDs and GIDs are how many ids a rootless podman maps into its containers.
	UIDs, GIDs int64
	// NetworkHelper is the program by which a rootless podman has a network; empty: none.
	NetworkHelper string
	UserRemap     bool // userns-remap: ids in containers aren't those of the machine
	LiveRestore   bool // containers go on while it restarts
	SELinux       bool // it labels containers
	Desktop       bool // it is in a virtual machine of Docker Desktop
	// GVisorFlags are those with which [compose.GVisorRuntime] is registered.
	GVisorFlags []string
}

// MappedIDs says why ids in containers aren't those of this machine; empty: they are.
// Rootless podman gives containers the caller's own id.
func (i *Info) MappedIDs() string {
	switch d := &i.Daemon; {
	case i.Flavour != FlavourDocker:
		return ""
	case d.Rootless:
		return "Docker is rootless"
	case d.UserRemap:
		return "Docker maps user ids (userns-remap)"
	}
	return ""
}

// Finding is one property of this machine that a promise depends on.
type Finding struct {
	Promise string // "B22"; empty: none depends on it
	Name    string // a word: "user-namespaces"
	Held    bool
	Meaning string // what it provides or, if it isn't held, why not
	Do      string // what to do if it isn't held; may be empty
	// Accepted: the user's settings go on without it.
	Accepted bool
	// Rooms: it matters only to workers with a room.
	Rooms bool
}

// Limits are the resource limits that the engine can enforce (B5).
type Limits struct{ Memory, Swap, CPU, PIDs, Seccomp bool }

// All reports whether memory, swap, cpu and pids can be limited.
func (l Limits) All() bool { return l.Memory && l.Swap && l.CPU && l.PIDs }

// Observed is a snapshot of a project's existing objects.
type Observed struct {
	Project    string
	Containers []Container
	Networks   []Object
	Volumes    []Object
	// Caches are the volumes of the project's caches, which `down` keeps, also
	// those of other directories with a project of the same name.
	Caches []Object
	// Others have the project's name and don't belong to a workshop.
	Others []Other
	// WorkersOnly: the engine has neither rooms nor a guard, so plans contain
	// workers only.
	WorkersOnly bool
	// Images has the IDs of the requested references that exist.
	Images map[string]string
	// Digests has, for each of them that a user may have built or loaded there by hand,
	// NAME@DIGEST of the registries that it came from or went to; empty for none.
	Digests map[string][]string
	// PolicyDigest is the digest of the policy file that a guard of this project
	// starts with (firewall.EncodePolicy, SHA-256, hexadecimal); empty if there is
	// none, it can't be read, or no images were requested.
	PolicyDigest string
	// Outdated: what runs the containers is of another build of this program. A plan
	// removes all that it recreates before it creates any, so that it can be replaced.
	Outdated bool
}

// Object is a network or volume.
type Object struct {
	ID     string // of a network; volumes have none
	Name   string
	Labels map[string]string
}

// WithObject adds an object to a list, replacing one of the same name.
func WithObject(list []Object, o Object) []Object { return append(WithoutObject(list, o.Name), o) }

// WithoutObject removes an object from a list.
func WithoutObject(list []Object, name string) []Object {
	return slices.DeleteFunc(list, func(o Object) bool { return o.Name == name })
}

// Container is one container of a project.
type Container struct {
	ID         string
	Name       string
	Service    string
	Role       string // of LabelRole; for display only, never for a security decision
	Image      string
	ImageID    string
	ConfigHash string
	State      string // created, running, exited …
	ExitCode   int
	Started    time.Time
	Directory  string // its project directory
	ByCompose  bool   // created by a Compose program from the generated files
	Ports      []string
	// NetworkOf is the ID of the container whose network namespace it joins.
	NetworkOf string
	// Networks are the names of the networks that it is attached to, NetworkIDs
	// the IDs of those that it has had since its start.
	Networks, NetworkIDs []string
	// Volumes are the names of the volumes that it mounts, if the engine reports them.
	Volumes []string
	// Machine is what its virtual machine is made of ([compose.LabelMachine]); empty: it is
	// none.
	Machine string
	// NotHeld are the promises that the user waived when it was created: B5 by
	// --without-limits.
	NotHeld []string
	// OneOff is a container of `docker compose run`, or a helper.
	OneOff bool
	// NotCompared: it runs, no Compose program made it, and it was not compared with what was
	// asked for since its start ([Compared]).
	NotCompared bool
	// Sources are those of a running worker on gVisor, of files that it can write to and
	// directories; Replaced the targets of those that are others now ([Replaced]).
	Sources  []Source
	Replaced []string
	// Silent: the engine lists it but doesn't respond to requests about it
	// ([SilentError]).
	Silent bool
	// Helper is a never started container by which volumes are filled; an existing
	// one was left by an interrupted run.
	Helper bool
}

// WhyEnded says why a worker ended by itself; "" if it runs or that is unknown.
func (c Container) WhyEnded() string {
	if c.lostMount() {
		return "it ended, as a mount of it was lost: what is there was replaced, renamed or removed on the host"
	}
	return ""
}

// lostMount reports whether a worker ended because the host took away a mount.
func (c Container) lostMount() bool {
	return c.State == "exited" && c.ExitCode == pid1.MountLost && c.Role == compose.RoleWorker.String()
}

// Event is the progress of a step.
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
	// Directory, if not empty, must be the worker's project directory; else the
	// error is a [ForeignError].
	Directory string
	TTY       bool
	Stdin     io.Reader // nil: no stdin
	Stdout    io.Writer
	Stderr    io.Writer // with TTY everything goes to Stdout
	// Size returns the terminal's size; Resized receives when it has changed.
	Size    func() (rows, cols uint, ok bool)
	Resized <-chan struct{}
	// Signals are forwarded to the command's process by name ("SIGINT").
	Signals <-chan string
}

// ToolboxCommand returns the command for a session of the worker, without User and
// Directory, which an engine checks before.
func (o *ExecOptions) ToolboxCommand() toolbox.Command {
	return toolbox.Command{
		Argv: o.Command, Env: o.Env, Cwd: o.Workdir, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Signals: o.Signals,
		TTY: o.TTY, Size: o.Size, Resized: o.Resized,
	}
}

// LogsOptions selects a part of the logs.
type LogsOptions struct {
	Follow     bool
	Timestamps bool
	Tail       string // number of lines or "all"
	Since      string
	Stdout     io.Writer
	Stderr     io.Writer
	Prefix     bool // "service | " before each line
}

// Desired is the desired state of a plan.
type Desired struct {
	Compiled *compose.Compiled // with facts
	// Only has the names of the wanted workers; empty: all.
	Only []string
	// NoWorkers: none is wanted, whatever Only is. Running ones are left alone
	// unless they are in the wrong room.
	NoWorkers bool
	// Builds maps a service with a build section to the hash of its context and
	// options, which names the built image. An engine computes it.
	Builds map[string]string
	// Pulled: the preceding plan of [PlanPull] has pulled images with pull policy
	// "always".
	Pulled bool
}
