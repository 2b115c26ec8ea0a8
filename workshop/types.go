package workshop

import (
	"time"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/workshop/worker"
)

// Value is a scalar of the file together with the place where it was written,
// so that errors, generated comments and rendered variables can name it. A
// zero Source means a default.
type Value[T any] struct {
	V      T
	Source diag.Source
}

// Workshop is a loaded, resolved and checked workshop.yaml. It is immutable:
// nothing below it may be changed after Load returned it.
type Workshop struct {
	// File is the path of workshop.yaml relative to the fs.FS given to Load,
	// with slashes; all relative paths of the file are relative to its folder.
	File        string
	Name        Value[string]
	Version     Value[string] // semver, may be empty
	Description Value[string]
	Isolation   Value[Isolation]
	// Container is what every worker gets, with defaults filled in.
	Container Container
	// Workers in the order of the file, each with its effective container.
	Workers   []Worker
	Approvals Approvals
	// MCP are the MCP servers that workers may start in their own containers, in
	// order of their names.
	MCP []MCPServer
	// Models are the model servers, in order of their names.
	Models []ModelService
	// Variables that the file uses, sorted by name.
	Variables []Variable
	// Symbolic: it was loaded with Options.Symbols.
	Symbolic bool
	// Base is the ID of the source that it extends; empty: it extends none.
	Base string
	// Sources are what it is made of besides the project's files, in order of their IDs.
	Sources []UsedSource
	// Open is what a project that extends this workshop may add.
	Open []Opened
	// Needs: it is a file to be imported, without a container and an image of its own;
	// Container is what it needs.
	Needs bool

	most []mostOf
}

// Opened is something that a project which extends a workshop may have beyond it.
type Opened struct {
	Text string // "net api.github.com tcp/80,443", "workers"
	At   diag.Range
}

// Variable is one ${NAME} of the file.
type Variable struct {
	Name       string
	Default    string // of ${NAME:-default}
	HasDefault bool
}

// Isolation is the kind of engine that a workshop asks for.
type Isolation string

// The isolations.
const (
	IsolationDocker    Isolation = "docker"
	IsolationNamespace Isolation = "namespace"
	IsolationAuto      Isolation = "auto"
	IsolationProcess   Isolation = "process" // by flag or user settings only
)

// Worker is one member of the workshop.
type Worker struct {
	Name   string
	Source diag.Source
	// File is the definition's path relative to the fs.FS given to Load; that of
	// workshop.yaml for an inline worker. That of a worker of a source begins with the
	// source's address.
	File string
	// From is the ID of the source that the worker comes from; empty for the project's
	// own.
	From string
	// Definition is the portable part: what the worker does.
	Definition worker.Definition
	// Container is the effective one: the workshop's, narrowed.
	Container Container
}

// Container is where a worker runs.
type Container struct {
	// Source is the workshop's `container:`.
	Source diag.Source
	// Image is a reference (package reference reads it), or [HostImage]; empty
	// exactly when Build is set. Its path, if it has one, is relative to the file.
	Image Value[string]
	Build *Build
	Pull  Value[PullPolicy]
	// User is "uid" or "uid:gid"; empty: decided from the caller at `up`.
	User    Value[string]
	Workdir Value[string] // absolute path in the container
	Network Network
	Mounts  []Mount
	// Scratch, Tmp, Shm and Home are sizes of tmpfs: /scratch, /tmp,
	// /dev/shm, /home/worker.
	Scratch, Tmp, Shm, Home Value[Size]
	Resources               Resources
	// Env by name.
	Env map[string]Value[string]
	// GitAuthor says whose name commits have: [GitAuthorHost], or what git inside finds.
	GitAuthor Value[string]
	Secrets   []Secret
	Caches    []Cache
	Ports     []Port
	Runtime   Value[string] // OCI runtime name; empty: the engine's default
	Kernel    Value[Kernel]
}

// GitAuthorHost gives commits the name of the user's own git configuration.
const GitAuthorHost = "host"

// HostImage is the image that needs none: the host's /usr and friends,
// read-only.
const HostImage = reference.HostName

// Size is a number of bytes.
type Size int64

// PullPolicy says when an image is pulled.
type PullPolicy string

// The pull policies, as in Compose.
const (
	PullMissing PullPolicy = "missing"
	PullNever   PullPolicy = "never"
	PullAlways  PullPolicy = "always"
)

// Build describes an image that is built from the repository.
type Build struct {
	Context    Value[string] // directory relative to the file
	Dockerfile Value[string] // relative to Context; "Dockerfile" if absent
	Args       map[string]Value[string]
	Target     Value[string]
	Source     diag.Source
}

// Network is what a worker may reach.
type Network struct {
	Mode  Value[firewall.Mode]
	Allow []firewall.Rule // presets expanded
	Deny  []firewall.Rule
	// Agents are what the user's ssh-agent signs.
	Agents []Agent
	// DNS are the guard's upstream resolvers; empty: the engine's.
	DNS []Upstream
	// Proxy is the guard's upstream HTTP proxy; empty: none.
	Proxy Upstream
	// ProxyCredential is the user's credential that the guard sends to Proxy; empty: none.
	ProxyCredential Value[string]
	// OwnRoom: the worker shares its room with nobody.
	OwnRoom Value[bool]
	Source  diag.Source
}

// Upstream is what the guard itself connects to: a resolver or a proxy.
type Upstream struct {
	Value[string]
	// NamedBy says whose word its host is. What the repository names must be no
	// address of the machine's own (see firewall.CheckUpstream).
	NamedBy Origin
}

// Mount is a directory or file of the host inside the container.
type Mount struct {
	Name   string
	Source Value[string] // as written, with ~ and variables resolved; relative to the file or absolute
	Target Value[string] // absolute, clean
	// ReadWrite is false by default. ModeTemplate is set where it comes from a variable.
	ReadWrite    bool
	ModeTemplate string
	// Exclude are globs (relative to the source, ** allowed); a mount with
	// Exclude or Copy is a read-only copy in a project volume.
	Exclude        []string
	Copy           bool
	OutsideProject bool // the source may be outside the project directory
	GitWritable    bool // git: rw
	AllowSockets   bool // sockets: allow
	// Within are the sources of the mounts that grant this one, the workshop's
	// first; none for the workshop's own. The real path must be below each one's
	// real path: a link could lead out of it.
	Within []string
	At     diag.Source // the whole entry
}

// IsCopy reports whether the mount is a read-only copy in a project volume.
func (m *Mount) IsCopy() bool { return m.Copy || len(m.Exclude) > 0 }

// Resources are the limits of one worker; all are always set.
type Resources struct {
	Memory  Value[Size]
	CPU     Value[float64] // cores
	PIDs    Value[int64]
	Timeout Value[time.Duration] // of one tool call
}

// Secret is a file at /run/secrets/NAME. Exactly one of Env and File is set.
type Secret struct {
	Name string
	Env  string        // variable of the host
	File Value[string] // path relative to the file
	At   diag.Source
}

// Port publishes a port of a worker on the host.
type Port struct {
	Host             Value[string] // address; default 127.0.0.1
	Published        Value[uint16] // 0: auto
	Target           Value[uint16]
	ExposeBeyondHost bool
	At               diag.Source
}

// Approvals says which tool calls a person must agree to; decided on the host.
type Approvals struct {
	Default Value[Approval]
	Rules   []ApprovalRule
}

// Approval is what happens with a call.
type Approval string

// The approvals.
const (
	ApprovalAuto Approval = "auto"
	ApprovalAsk  Approval = "ask"
	ApprovalDeny Approval = "deny"
)

// ApprovalRule is one line of approvals.rules.
type ApprovalRule struct {
	Tool     string
	Match    string
	Approval Approval
	At       diag.Source
}

// MCPServer is an MCP server that speaks over its standard input and output
// and runs in the container of each worker that lists its tools
// (mcp__NAME or mcp__NAME__TOOL).
type MCPServer struct {
	Name    string
	Command []string // command and args: the program first
	Env     map[string]string
	// Secrets returns variables the value of a secret of the worker.
	Secrets map[string]string
	At      diag.Source
}
