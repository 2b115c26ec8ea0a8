package verify

import (
	"slices"

	"github.com/llmdo/workshop/internal/promise"
)

// Kind is how a promise is verified.
type Kind string

// The kinds.
const (
	Inspected  Kind = "inspected"  // looked at from outside
	Probed     Kind = "probed"     // tried in the worker
	Disruptive Kind = "disruptive" // only by --disruptive, in a copy
	Elsewhere  Kind = "not here"   // by the project's own tests
)

// Method says how a promise is verified.
type Method struct {
	Promise string
	Kinds   []Kind
	// Outside is what is looked at from outside, Inside what is tried in the worker.
	Outside, Inside string
	// Rests is what the verdict rests on where that isn't clear from the kinds.
	Rests string
	// Partly: what is tested can break the promise, but doesn't show all of it.
	Partly bool
}

// Methods are those of all promises, in their order.
func Methods() []Method { return slices.Clone(methods) }

// MethodOf is the method of one promise; zero for an unknown number.
func MethodOf(id string) Method {
	if i := slices.IndexFunc(methods, func(m Method) bool { return m.Promise == id }); i >= 0 {
		return methods[i]
	}
	return Method{}
}

var methods = []Method{
	{"B1", []Kind{Inspected, Probed}, "capability sets of its processes, of room and guard (`/proc/PID/status`)", "a raw socket", "outside", false},
	{"B2", []Kind{Inspected, Probed}, "NoNewPrivs and Seccomp of its processes, of room and guard; Docker's settings", "system calls and sockets that the profile refuses", "both", false},
	{"B3", []Kind{Inspected, Probed}, "the mounts of its main process (`/proc/PID/mountinfo`)", "writing at the root, and which mounts are writable", "outside", false},
	{"B4", []Kind{Inspected, Probed}, "uid, gid and groups of its processes", "its own uid", "outside; who owns new files is the kernel's doing", false},
	{"B5", []Kind{Inspected, Disruptive}, "the files of its control groups; Docker's settings", "using up memory, processes and memory file systems (in a copy)", "outside", false},
	{"B6", []Kind{Inspected, Probed}, "namespaces, devices and mounts of its main process; Docker's settings", "sockets of engines, `/proc/1`", "outside", false},
	{"B7", []Kind{Inspected}, "the sources of its mounts", "", "outside; refusals are tested by the project", false},
	{"B8", []Kind{Inspected, Probed}, "protected directories are mount points, read-only", "the same", "outside", false},
	{"B9", []Kind{Inspected, Probed}, "the copy is mounted read-only", "an excluded file is missing, another is there", "outside for read-only, inside for what is missing", false},
	{"B10", []Kind{Inspected}, "addresses that are published, and listeners of this machine", "", "outside", false},
	{"B11", []Kind{Inspected, Probed}, "no value of a secret in what the engine knows, nor in generated files", "which secrets are there", "outside for values, inside for which are there", false},
	{"B12", []Kind{Inspected, Probed}, "name, arguments and PID of its main process", "the same", "outside", false},
	{"B13", []Kind{Inspected, Probed}, "the boot id and version of this machine's kernel, and what it runs in the place of its main process", "those of its own", "both", true},
	{"B20", []Kind{Inspected, Probed}, "its interfaces (`/proc/PID/net/dev`)", "the same; connecting without a network", "outside", false},
	{"B21", []Kind{Inspected, Disruptive}, "restart policies; in a copy a listener that nobody reaches", "connections while guard and room are killed (in a copy)", "outside; *in part* without `--disruptive`", false},
	{"B22", []Kind{Probed}, "", "changing rules, routes and addresses; the guard's ports", "inside", false},
	{"B23", []Kind{Probed}, "the guard's denial of the name", "looking up names that no line has", "both", false},
	{"B24", []Kind{Probed}, "the guard's denial of the name", "TLS and HTTP with a denied name; with `--live` an allowed one, sent to another address", "both", false},
	{"B25", []Kind{Probed}, "the guard's denial of the address", "a port that no line names, and one that a line names for others", "both", false},
	{"B26", []Kind{Probed}, "the guard's denials; a listener of this machine that nobody reaches", "metadata, private and this machine's addresses", "both", false},
	{"B27", []Kind{Disruptive}, "how many connections the guard ended", "a connection that is denied while it is used (in a copy, with `--live`)", "both", false},
	{"B28", []Kind{Probed}, "each denial of the tries above, and the kernel's count", "how long each took", "both", false},
	{"B29", []Kind{Inspected, Disruptive}, "the guard's restart policy; in a copy that it is back, and the worker the same", "the guard's own name afterwards (in a copy)", "outside; *in part* without `--disruptive`", false},
	{"B30", []Kind{Inspected}, "its main process runs on this machine's kernel; Docker's runtime", "", "outside", false},
	{"B31", []Kind{Inspected}, "what the guard would do with addresses of its never-list", "", "what the guard says", false},
	{"B32", []Kind{Elsewhere}, "", "", "", false},
	{"B33", []Kind{Elsewhere}, "", "", "", false},
	{"B34", []Kind{Probed}, "the guard's denial of the request, and of the host around its endpoint", "a request that an endpoint's line doesn't have, one with another Host, TLS for its host around it", "both; what is sent of allowed ones, and refs of git, are tested by the project", true},
	{"B35", []Kind{Elsewhere}, "", "", "", false},
	{"B36", []Kind{Elsewhere}, "", "", "", false},
	{"B40", []Kind{Elsewhere}, "", "", "", false},
	{"B41", []Kind{Inspected, Probed}, "the door and workshop-init are mounted read-only", "tools that the file doesn't list, asked of the toolbox; reading workshop-init", "the toolbox; what clients are offered is tested by the project", false},
	{"B42", []Kind{Elsewhere}, "", "", "", false},
	{"B43", []Kind{Inspected}, "no process of it has a terminal of this machine", "", "outside; the rest is tested by the project", true},
	{"B44", []Kind{Inspected, Probed}, "no key of a model in its configured environment", "the same in a command's environment", "outside for its configuration", false},
	{"B45", []Kind{Inspected, Probed}, "its configured variables have none of yours", "a command has no others", "outside for its configuration", false},
	{"B46", []Kind{Elsewhere}, "", "", "", false},
	{"B47", []Kind{Elsewhere}, "", "", "", false},
	{"B60", []Kind{Inspected, Disruptive}, "limits of open files and queued signals; in a copy the guard after a flood", "a flood (in a copy)", "outside; *in part*: parsers are fuzzed by the project", false},
}

// otherwise says how promises are verified of a worker with a kernel of its own, gVisor's, where
// that differs.
var otherwise = map[string]string{
	"B1":  "inside its kernel's sets are empty; outside the processes of its kernel are in a user namespace of their own, with gVisor's capabilities at most",
	"B2":  "NoNewPrivs and Seccomp of all processes of its kernel; inside calls are refused that gVisor doesn't have or doesn't give",
	"B3":  "the mounts of the process that opens files for its kernel, which are the worker's; its memory file systems are seen inside alone",
	"B4":  "inside its uid, which is the one that the engine was asked for",
	"B5":  "the control groups of its kernel: 256 + 4 threads for each process; a copy of it ends beyond memory and processes, and nobody else does",
	"B6":  "namespaces, devices and mounts of its kernel's processes; not its namespace of control groups, of which it sees no names",
	"B8":  "by the same mounts",
	"B9":  "by the same mounts",
	"B11": "by the same mounts",
	"B12": "inside the name of PID 1, into which the worker can't look; outside what the engine was told to start",
	"B22": "inside rules, routes and addresses can't be changed; outside its room has the addresses, routes and listeners that it had, and its kernel no right over it",
	"B25": "denials at ports that its relay accepts at; others are refused by its kernel, and told to nobody",
	"B26": "at the same ports",
	"B28": "at the same ports",
	"B30": "Docker's runtime is gVisor's, and its kernel is in the network namespace of its room, which has no cable",
	"B41": "by the same mounts; its kernel has to read workshop-init, and it has no door",
	"B60": "its kernel's memory and threads are limited",
}

// inAMachine is otherwise for a worker in a virtual machine: what is seen outside is the
// container that holds the machine.
var inAMachine = map[string]string{
	"B3":  "the mounts of that container, of which those that the guest is served are the worker's; its memory file systems are seen inside alone",
	"B5":  "the control groups of the machine: 64 threads; that its guest limits processes is seen in a copy",
	"B6":  "the same; with KVM its device is there, too",
	"B8":  "by the same mounts; inside nothing can be written there",
	"B9":  "by the same mounts",
	"B11": "by the same mounts",
	"B12": "inside the name of PID 1; outside workshop-vm is the main process",
	"B13": "the boot id; outside QEMU and /dev/kvm. Not tested with `--emulate`, which doesn't hold it",
	"B22": "inside as others; outside its room has the addresses, routes and listeners that it had",
	"B25": "as on gVisor",
	"B26": "as on gVisor",
	"B28": "as on gVisor",
	"B30": "the same of its machine, which is in the network namespace of its room",
	"B41": "by the same mounts; the guest has no door",
}

// titleOf is a promise in a few words.
func titleOf(id string) string {
	if i := order(id); i < len(promise.All()) {
		return promise.All()[i].Title
	}
	return ""
}

// order is the place of a promise among all.
func order(id string) int {
	all := promise.All()
	if i := slices.IndexFunc(all, func(p promise.Promise) bool { return p.ID == id }); i >= 0 {
		return i
	}
	return len(all)
}
