package verify

import (
	"net/netip"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/procinfo"
	"github.com/llmdo/workshop/internal/made"
)

// Worker is a worker as the file grants it, with what is seen of it.
type Worker struct {
	Name string
	Mode firewall.Mode
	// Memory, CPUs and PIDs are its limits; NotHeld the promises that a user waived.
	Memory  int64
	CPUs    float64
	PIDs    int64
	NotHeld []string
	// OwnKernel: its file asks for another kernel than this machine's, which is Machine, and
	// Runtime is the OCI runtime that gives it. PIDs are then threads of this machine.
	OwnKernel bool
	Machine   made.Kernel
	Runtime   string
	// VM: that kernel runs in a virtual machine, whose container is what is seen outside: it has
	// what the worker would have on this machine's kernel, and PIDs are its threads.
	VM bool
	// RoomBefore and RoomAfter are its room around the tries; nil: there is none, or it wasn't
	// looked at, as is that of a worker with this machine's kernel.
	RoomBefore, RoomAfter *Outside
	// Mounts of the file; Writable are further targets that may be written, such as caches.
	Mounts   []Mount
	Writable []string
	// Protected are the directories in rw mounts that host programs use (B8).
	Protected []Protected
	Secrets   []string
	// Env are the names of the variables that the file and the program give it, Caller is
	// the environment of who verifies.
	Env    map[string]bool
	Caller []string
	// Published are the addresses at which the file publishes its ports.
	Published []string
	// Refusal is why a source is refused (B7); nil: it isn't known.
	Refusal func(source string) string
	// Replaced are the targets of mounts whose sources are other files now, Sockets the sockets
	// of this machine in its mounts, of which SocketsMissed weren't looked for. They are of
	// workers that don't end by themselves then, or can connect to them by another way.
	Replaced, Sockets []string
	SocketsMissed     error
	// Changed: the file isn't that of the last `up`.
	Changed bool

	Toolbox Toolbox
	Net     *Net // nil: mode none

	Seen    Seen
	Unseen  string // why there is nothing in Seen
	Outside *Outside
}

// Toolbox is what a worker's toolbox answered to calls of tools.
type Toolbox struct {
	Why      string // why it answered nothing
	Unlisted []Asked
	Control  string // what it answered to a listed one
}

// Asked is a tool that isn't listed, with the answer.
type Asked struct{ What, Answer string }

// NotOffered is the answer that refuses a tool.
const NotOffered = "not offered"

// Protected is a directory that must be read-only if it was there when the worker
// started.
type Protected struct {
	Target string
	// Later: it was made since. Unsure: that isn't known.
	Later, Unsure bool
}

// Mount is a mount of the file.
type Mount struct {
	Target    string
	ReadWrite bool
	// Copy: it is a read-only copy. Excluded and Kept are files of the source, relative
	// to it, that the copy lacks and has; empty: none was found.
	Copy           bool
	Excluded, Kept string
}

// Net is a worker's network, and what was tried in it.
type Net struct {
	Room    string
	Tries   Tries
	Closed  string // why the room is closed, or has no guard
	Learns  bool
	Stale   bool // the guard has another policy than the file
	Denials []Denial
	// Dialled are addresses that the guard connected to, by the name that was asked for.
	Dialled map[string][]string
	// Explained are what the guard would do, by the address.
	Explained map[string]Answer
	// Refused is the kernel's count before and after.
	RefusedBefore, RefusedAfter uint64
	// Canary is a listener of this machine.
	Canary Canary
	// NoEvents is why the guard's events are not known.
	NoEvents string
}

// Canary is a listener of the program that verifies, at an address of this machine.
type Canary struct {
	Address string // host:port; empty: there is none
	Why     string // why there is none
	Control bool   // its own connection arrived
	Others  int    // connections that weren't its own
}

// Denial is a denial as the guard counted it.
type Denial struct {
	Kind, Name, Address, Reason string
	Port                        uint16
}

// Answer is what the guard would do with a connection to an address.
type Answer struct {
	Allowed bool
	Dialled bool // the address would be dialled
	Reason  string
}

// Tries are the destinations of denied tries, chosen so that the policy has no line for
// them.
type Tries struct {
	From netip.AddrPort
	// Special never exists (.invalid), Name is an ordinary one; empty: the policy allows all.
	Special, Name string
	// Address is one of documentation. Port is one that no line names, Named one that a
	// line names for others; 0: there is none. Never is that of addresses that are never
	// opened.
	Address     netip.Addr
	Port, Named uint16
	Never       uint16
	// Carried: its kernel is its own, and connections are carried to its room. Untold is then a
	// port that no line names and that its kernel refuses, which nobody is told; 0: there is none.
	Carried bool
	Untold  uint16
	Private netip.Addr // a private one; invalid: a line opens it
	// Endpoints are those of the policy, each with a request that its line doesn't have.
	Endpoints []EndpointTry
	// Live are allowed destinations that are dialled, host:port.
	Live []string
}

// Outside is what is seen of a container from outside.
type Outside struct {
	// Why there is nothing; empty: there is something.
	Why string
	// Process is the main process by the kernel; nil: it isn't shown here (see Hidden).
	Process *Process
	Hidden  string
	// Files is, of a kernel of its own, the process that opens files for it: its mounts are
	// the worker's. nil: there is none, or FilesHidden says why it isn't shown.
	Files       *Process
	FilesHidden string
	engine.Witness
}

// Process is what the kernel shows of a container's main process. Parts that this
// program may not read are in Unread with the reason.
type Process struct {
	Status map[string]string // fields of /proc/PID/status
	Args   []string
	// Below are the fields of processes that it started, at most a few hundred.
	Below []map[string]string
	// Limits are the soft limits of /proc/PID/limits by name.
	Limits     map[string]string
	Groups     *cgroup.Enforced
	Mounts     []procinfo.Mount
	Interfaces []string
	// Network are the addresses and routes of its network namespace, as the kernel writes
	// them; Listening are the addresses at which something listens there.
	Network   string
	Listening []string
	// Namespaces and Here are the identities of its namespaces and of ours.
	Namespaces, Here map[string]string
	Devices          []string
	Owner            int // who may look into the process; 0: root alone
	Unread           map[string]string
}
