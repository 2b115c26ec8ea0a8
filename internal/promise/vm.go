package promise

func vmTests(names ...string) []string { return scenarios("TestVM", names) }

// inVM has the promises that hold for a worker in a virtual machine by something else than for
// others of the namespace engine, and where that is tested.
var inVM = map[string]kernelRow{
	"B1": {how: "the machine's processes have none; in its guest the worker has none", tests: vmTests("Verify")},
	"B2": {how: "the profile filters calls of the machine's processes, which filter themselves further, and in its guest those of the worker", tests: vmTests("Verify", "Sessions")},
	"B3": {how: "read-only mounts outside of the guest, and an image that QEMU has read-only; sizes of tmpfs, by the guest", tests: vmTests("Verify", "Files", "Image")},
	"B4": {how: "setresuid of the machine's processes, one of which opens its files, and of the worker in its guest", tests: vmTests("Verify", "Files", "Sessions")},
	"B5": {
		how:         "memory and cpu by cgroups, of which the machine takes 64 MB and a sixteenth (192M is the least); it has at most 64 threads, and its guest limits processes",
		differently: "limits of processes", tests: vmTests("Verify*", "Limits"),
	},
	"B6": {
		how:         "namespaces and a /dev of the machine's own, in which /dev/kvm is too: who breaks out of the machine can use it",
		differently: "the device beside the machine", tests: append(vmTests("Verify"), "internal/engine/namespace: TestTranslateMachine*"),
	},
	"B7":  {how: "checked before the start; opened without following links, mounted by descriptor; no socket of this machine reaches into the guest", tests: vmTests("Verify", "Refused")},
	"B8":  {tests: vmTests("Verify", "Files")},
	"B9":  {tests: vmTests("Verify", "Files")},
	"B10": {how: "the supervisor listens and passes the socket to the guard; carried inward by the outlet", tests: vmTests("Ports")},
	"B11": {tests: vmTests("Verify", "Files")},
	"B12": {how: "workshop-vm; in its guest the worker init, from the initramfs", tests: vmTests("Verify", "Down")},
	"B20": {how: "the network namespace of its room, of which the machine uses nothing: it has no network card", tests: append(vmTests("Verify", "Network"), "internal/vm/monitor: TestArgsHaveNoOtherDevice")},
	"B22": {how: "no capability, neither of the machine nor of the worker in its guest", tests: vmTests("Verify")},
	"B23": {how: carried, tests: vmTests("Network")},
	"B24": {how: carried, tests: vmTests("Network")},
	"B25": {how: carried + "; its guest, for ports that the outlet doesn't carry", tests: vmTests("Network", "Again")},
	"B26": {how: carried + "; its guest, for ports that the outlet doesn't carry", tests: vmTests("Network")},
	"B27": {how: carried, tests: vmTests("Again")},
	"B28": {
		how:         "ports that no line names are refused inside; those of well-known services are told to the guard, others aren't counted",
		differently: "denials that nobody is told", tests: vmTests("Network"),
	},
	"B29": {how: "the supervisor restarts it, and the outlet; the room passes sockets, live denies and spent budgets on", tests: vmTests("GuardAndOutletKilled")},
	"B30": {how: "QEMU, the file server and the monitor run on this machine's kernel, by its boot id, in the network namespace of the room", tests: vmTests("Verify", "Refused")},
	"B31": {tests: vmTests("Verify")},
	"B34": {how: carried},
	"B41": {how: "the session on the host, carried to the toolbox in the worker", tests: vmTests("Verify", "Sessions")},
	"B44": {tests: vmTests("Verify")},
	"B45": {tests: vmTests("Verify")},
	"B60": {how: "bounded and fuzzed parsers, also of what a guest may say to its monitor and its file server", tests: []string{"internal/vm: TestHostileGuests", "internal/vm: TestHostileStreams", "internal/vm/files: TestRequests"}},
}
