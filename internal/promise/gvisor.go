package promise

import "cmp"

// A worker with a kernel of its own: with `kernel: sandboxed` on Docker, with `kernel: vm` (or
// `sandboxed`) on namespaces.
const (
	GVisor = "gvisor"
	VM     = "vm"
)

// kernelRow says how a worker with a kernel of its own has a promise: zero fields are as on the
// engine.
type kernelRow struct {
	how string
	// differently is, in a few words, what isn't as on this machine's kernel; empty: nothing.
	differently string
	// tests are those of such workers.
	tests []string
}

func gvisorTests(names ...string) []string { return scenarios("TestGVisor", names) }

// scenarios are those whose names have a beginning in common.
func scenarios(begin string, names []string) []string {
	for i := range names {
		names[i] = "e2e: " + begin + names[i]
	}
	return names
}

var (
	verified = gvisorTests("Verify")
	carried  = "the guard, to which the outlet leads"
)

// onGVisor has the promises that hold for a worker with a kernel of its own by something else
// than for others, and where that is tested. What isn't in it doesn't depend on the kernel.
var onGVisor = map[string]kernelRow{
	"B1": {how: "cap_drop ALL, which its kernel obeys; that kernel's processes are in a user namespace of their own", tests: verified},
	"B2": {
		how:         "this machine's kernel filters gVisor's calls; the worker's own calls are gVisor's to refuse, and `/proc/self/status` doesn't show it",
		differently: "filters of calls", tests: verified,
	},
	"B3": {how: "read_only, by the mounts of the process that opens its files; sizes of tmpfs, by its kernel", tests: gvisorTests("Verify*", "Files", "HostileWorker", "LostMount")},
	"B4": {how: "user, which its kernel obeys", tests: verified},
	"B5": {
		how:         "memory and cpu by the engine's cgroups, of which gVisor takes about 55 MB (128M is the least); processes by threads of this machine, 256 + 4 for each: a worker beyond that ends",
		differently: "limits of processes", tests: gvisorTests("Verify*"),
	},
	"B6":  {how: "gVisor's processes are in namespaces of their own, without devices; it shows none of this machine's cgroups", tests: verified},
	"B7":  {how: "checked before the start, and sockets by ps and verify, too; the engine mounts the resolved path", tests: gvisorTests("Verify", "GainedSocket")},
	"B8":  {tests: gvisorTests("Verify", "Files", "HostileWorker", "LostMount", "ReplacedSource")},
	"B9":  {tests: gvisorTests("Verify", "Files")},
	"B10": {how: "published at the guard, and carried inward by the outlet", tests: gvisorTests("Published")},
	"B11": {tests: gvisorTests("Verify", "Files")},
	"B12": {
		how:         "the worker init, from a tool volume that its kernel can read; a process of the worker can end it, and so the worker; it can't read or trace it",
		differently: "the end of PID 1", tests: append(gvisorTests("Verify", "HostileWorker"), "e2e: TestB13_GVisor"),
	},
	"B20": {how: "the network namespace of its room, of which its kernel uses nothing: it has a network stack of its own, with loopback alone", tests: gvisorTests("Network")},
	"B21": {tests: gvisorTests("UpKilled", "WithoutGuardOrOutlet")},
	"B22": {
		how:         "no right over the room; there are no rules inside, and ports below 1024 can be listened on, which changes nothing outside",
		differently: "its own network", tests: gvisorTests("Verify", "HostileRelay"),
	},
	"B23": {how: carried, tests: gvisorTests("Network", "Work")},
	"B24": {how: carried, tests: gvisorTests("Network")},
	"B25": {how: carried + "; its kernel, for ports that the outlet doesn't carry", tests: gvisorTests("Network", "LiveChange")},
	"B26": {how: carried + "; its kernel, for ports that the outlet doesn't carry", tests: gvisorTests("Network")},
	"B27": {how: carried, tests: gvisorTests("LiveChange")},
	"B28": {
		how:         "ports that no line names are refused inside; those of well-known services are told to the guard, others aren't counted",
		differently: "denials that nobody is told", tests: gvisorTests("Network", "Untold", "Work"),
	},
	"B29": {how: "the engine's restart policy, of the outlet too; the room passes sockets, live denies and spent budgets on", tests: gvisorTests("Npm", "WithoutGuardOrOutlet")},
	"B30": {how: "the runtime workshop-runsc alone, with flags that don't open it, and in the network namespace of the room", tests: gvisorTests("Flags", "Wrapped", "Verify")},
	"B31": {tests: verified},
	"B34": {how: carried, tests: verified},
	"B41": {how: "the session on the host, the toolbox in the worker, by the engine's exec", tests: gvisorTests("Verify", "Work")},
	"B44": {tests: verified},
	"B45": {tests: verified},
	"B60": {how: "bounded and fuzzed parsers, also of what a worker may say to its outlet", tests: gvisorTests("HostileRelay", "HostileWorker", "ManyConnections", "Npm")},
}

// with is [Of] an engine's worker whose kernel is its own.
func (row kernelRow) with(k Kept) Kept {
	return Kept{ID: k.ID, Held: k.Held, How: cmp.Or(row.how, k.How), Differently: row.differently, Tests: row.tests}
}
