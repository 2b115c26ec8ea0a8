package compose

import (
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// Role is what a service of a compiled project is. It is known because the
// compile made the service, never by a label or a name.
type Role int

// The roles.
const (
	RoleWorker Role = iota + 1
	RoleRoom        // network namespace with loopback only
	RoleGuard       // decides and carries egress
	RoleOutlet      // makes the connections of a worker whose kernel isn't this machine's
)

// String is the role as [LabelRole] has it; empty for the zero value.
func (r Role) String() string {
	switch r {
	case RoleWorker:
		return "worker"
	case RoleRoom:
		return "room"
	case RoleGuard:
		return "guard"
	case RoleOutlet:
		return "outlet"
	}
	return ""
}

// IsWorkers reports whether a role, as [LabelRole] has it, is a worker's, or none that is
// known: all others run no program of a worker.
func IsWorkers(role string) bool {
	return role != RoleRoom.String() && role != RoleGuard.String() && role != RoleOutlet.String()
}

// Names inside the generated project. Workers may not be called so.
const (
	GuardService = "guard"
	roomPrefix   = "room" // "room", or "room-WORKER" where there are several
)

// Paths inside the containers.
const (
	InitPath   = "/opt/workshop/workshop-init" // in workers, from the tool volume
	InitDir    = "/opt/workshop"
	SocketDir  = "/run/workshop" // rooms and guard: <room>.sock
	PolicyDir  = "/etc/workshop" // guard: policy.json
	SecretsDir = "/run/secrets"
	controlDir = "/run/guard" // guard: its own tmpfs, with the control socket
	homeDir    = "/home/worker"
	scratchDir = "/scratch"
	ImageInit  = "/workshop-init" // the entrypoint of the workshop-init image
	guardUser  = "65532:65532"
)

// Volume keys of the generated project.
const (
	SocketsVolume = "sockets" // rooms and guard, never a worker
	ToolsVolume   = "tools"   // external, workshop-init by content hash, read-only
	// ReadableToolsVolume is the same for workers of a sandbox, whose kernel has to read what
	// it executes.
	ReadableToolsVolume = "tools-readable"
	// PolicyVolume is used by engines that fill volumes; rendered files bind
	// ./guard instead.
	PolicyVolume = "policy"
)

// Variables of the generated project that only `compile --load` and engines
// can give. They are rendered as ${NAME:?run workshop compile --load}.
const (
	// VarFacts is in place of the tool volume's name, which only the
	// second file gives: neither the first file alone nor both variables
	// without the second file start anything.
	VarFacts     = "WORKSHOP_FACTS"
	VarInitImage = "WORKSHOP_INIT_IMAGE" // image reference or ID of workshop-init
)

// Labels that the project carries next to Compose's own.
const (
	LabelRole       = "dev.llmdo.workshop.role" // worker | room | guard | outlet
	LabelWorkshop   = "dev.llmdo.workshop.name"
	LabelDirectory  = "dev.llmdo.workshop.directory"   // absolute project directory, set from facts
	LabelConfigHash = "dev.llmdo.workshop.config-hash" // set by engines
	LabelPolicy     = "dev.llmdo.workshop.policy"      // digest of the guard's policy, for plain Compose
	LabelRooms      = "dev.llmdo.workshop.rooms"       // room of a worker
	LabelContent    = "dev.llmdo.workshop.content"     // of a copy's volume: Copy.Digest, set by engines
	LabelCopy       = "dev.llmdo.workshop.copy."       // and the volume's key; of a worker: the same
	LabelMachine    = "dev.llmdo.workshop.machine"     // what a worker's virtual machine is made of, by hash
)

// Compiled is a project together with what cannot be said inside it.
// It is immutable: WithFacts returns a copy.
type Compiled struct {
	Project *types.Project
	// Roles by service name.
	Roles map[string]Role
	// RoomOf returns the room service of a worker or outlet; absent for a worker
	// with network mode none.
	RoomOf map[string]string
	// Policy is the guard's; nil when no worker has a room.
	Policy *firewall.Policy
	// Rulesets by room service name.
	Rulesets map[string]firewall.Ruleset
	// Copies are the read-only copies of mounts with exclude or copy: volume
	// key to what goes into it.
	Copies map[string]Copy
	// Caches are the volumes that outlive their worker: volume key to whose it is.
	Caches map[string]Cache
	// Seccomp is the profile of all services as JSON for the engine; the same
	// for every architecture, see [SeccompProfile].
	Seccomp []byte
	// Origins says for a path of the project ("services.code-reviewer.mem_limit")
	// where its value was written.
	Origins map[string]diag.Source
	// Facts is nil before WithFacts.
	Facts *Facts

	// workshop is what was compiled, base what [WithFacts] started from (nil
	// before), and added what it added per service.
	workshop *workshop.Workshop
	workers  map[string]*workshop.Worker // by service
	base     *Compiled
	added    map[string]*addition
}

// Copy says what an engine puts into a volume before the first start.
type Copy struct {
	Source  string   // directory or file, relative to workshop.yaml or absolute
	Exclude []string // globs relative to Source
	// Digest identifies the files that are copied; empty before [WithFacts], or
	// where nobody looked.
	Digest string
}

// File is one generated file; Path is relative to .workshop/<name>/.
type File struct {
	Path string
	Data []byte
	Mode uint32 // permission bits
}

// Facts is what the machine is. It is collected by effects (internal/facts and
// the engine) and applied by [WithFacts]; the plan prints it.
type Facts struct {
	// Project is the name of the project on the engine; empty: the workshop's.
	Project    string
	ProjectDir string // absolute directory of workshop.yaml, symlinks resolved
	Arch       string // GOARCH of the engine: amd64, arm64
	IPv6       bool   // the engine's kernel has IPv6
	Local      bool   // the engine sees this machine's files
	// MappedIDs says why ids in containers aren't those of this machine, as "Docker is
	// rootless"; empty: they are.
	MappedIDs string
	// Runtimes are the OCI runtimes that the engine has; empty: not known.
	// DefaultRuntime is that of containers that name none; empty: no other than
	// the machine's kernel. UserRuntimes are those that the user allows for
	// workers without a room.
	Runtimes, UserRuntimes []string
	DefaultRuntime         string
	// Kernels say how the engine gives workers kernels other than this machine's.
	Kernels map[workshop.Kernel]KernelFacts

	UID, GID   int    // of the workers, never 0
	UserReason string // why that one: "caller", "SUDO_UID", "owner of the project", "fallback"
	// RuntimeDir is the 0700 directory of this workshop for secrets, passwd
	// and group, and the workers' doors: $XDG_RUNTIME_DIR/workshop/<id>.
	RuntimeDir string
	// Sources by Mount.Source as written.
	Sources map[string]SourceFacts
	// Points are the mount points of mounts inside of other mounts, by their
	// absolute paths on this machine: in the source of the mount around them.
	Points map[string]PointFacts
	// CopyDigests identify, by key of Copies, the files that a copy would have
	// now.
	CopyDigests map[string]string
	// Protected lists, per source that is mounted read-write, the existing
	// protected directories below it, sorted by path: B8.
	Protected map[string][]Protected
	// ToCreate lists the sources of read-write mounts, as written, that do not
	// exist and are inside the project: they are created at `up`.
	ToCreate []string
	// Refused are the paths that no worker gets (B7), with the engine's own and
	// with what they really are where symlinks lead elsewhere.
	Refused []RefusedPath
	// HostAddrs are public addresses of the engine's machine, sorted: the guard
	// can't see them from its own network, and they are the host (B26).
	HostAddrs []string
	// LoopbackAddrs lead from the guard's network to the loopback interface of the
	// engine's machine, or may: those of a network in user space.
	LoopbackAddrs []string
	// Roots are the certificates, in DER, that the hosts of endpoints are verified by.
	Roots [][]byte
	// GitAuthor is who commits, of workers with `git_author: host`.
	GitAuthor GitAuthor
	// Ports are the ports of the host for those that the workshop leaves open; empty
	// for plain Compose, which takes any.
	Ports map[PortKey]uint16
	// HostPaths are the read-only binds for `image: host`.
	HostPaths  []string
	InitImage  string // reference or ID of the workshop-init image
	InitVolume string // name of the tool volume
	// SecretFiles returns for a secret's name the file that holds its value.
	// The files belong to the worker's uid, so a secret of workers with
	// different users has one per user: "NAME" or "NAME@UID:GID".
	SecretFiles map[string]string
}

// RefusedPath is a path that no worker gets (B7).
type RefusedPath struct {
	// Path is absolute and clean; a last * matches any end of the name.
	Path string
	// What is its name in messages; empty: the path.
	What string
	// Whole: what is inside may be mounted.
	Whole bool
}

// PointFacts is what is found on the way from the source of a mount to the
// mount point of another one inside of it.
type PointFacts struct {
	Exists bool
	// Link is the first part of the way that is a symbolic link, absolute; empty:
	// none is.
	Link string
}

// SourceFacts is what a mount source is on this machine.
type SourceFacts struct {
	Exists bool
	Dir    bool
	Real   string // absolute, symlinks resolved
	// Alias says that B7 refuses the source under another name, by what the
	// file system says: "is /home/me/.ssh". Empty: it doesn't.
	Alias    string
	UID, GID int
	Mode     uint32 // permission bits
	// ACL: the source has a POSIX access control list, so that owner and mode
	// do not tell who may write.
	ACL bool
	// MountPoints are absolute paths below Real where a file system is
	// mounted, Specials the sockets, FIFOs and devices at or below it.
	MountPoints []string
	Specials    []string
	// Git: git takes the source for a git directory, whatever its name is.
	Git bool
	// GitHooks: it is in the hooks of a git directory.
	GitHooks bool
	// Linked are the repositories of linked worktrees and submodules in the source.
	Linked []LinkedGit
}

// LinkedGit is the repository of a directory whose .git is a file. Real names Dir back:
// a .git file alone proves nothing.
type LinkedGit struct {
	Dir    string // with the .git file, relative to the source; "." is the source
	GitDir string // what the file names, as written: absolute, or relative to Dir
	// Held: Dir is in a protected directory, and read-only therefore.
	Held bool
	// Real is the directory with objects and refs, absolute, symlinks resolved.
	Real string
	// Own is the worktree's own directory, relative to Real; empty for a submodule.
	Own string
	// Worktree is a submodule's core.worktree, relative to Real or absolute.
	Worktree string
	// Pinned is what of Real stays read-only with `git: rw`, relative to it, sorted.
	Pinned []string
	// Unusable says why it isn't mounted, NotWritable why not with `git: rw`.
	Unusable, NotWritable string
	UID, GID              int // of Real,
	Mode                  uint32
	ACL                   bool
}
