package threat

// kernelItems: out of a container by the kernel that all share.
var kernelItems = []Item{
	{
		ID: "K1", Attack: "System calls and sockets that have led out: keyrings, `bpf`, `io_uring`, `userfaultfd`, `open_by_handle_at`, `clone3`, file leases, AF_VSOCK, AF_ALG, AF_PACKET",
		Fell:   []string{"Docker before 1.0 (shocker.c)", "runc and its kernel (CVE-2022-0185)"},
		Status: Closed, Answer: "One seccomp profile on every engine refuses them; a worker has no capability for them",
		Remedy:   "A hole in an allowed system call is a hole in the boundary. For strangers, use virtual machines",
		Promises: []string{"B1", "B2"}, Tests: []string{"e2e TestB02_CallsThatLedOut", "e2e TestB02_NoNewPrivilegesAndSeccomp"},
	},
	{
		ID: "K2", Attack: "A user namespace of its own, to be root in it",
		Status: Closed, Answer: "seccomp refuses `clone`, `clone3`, `unshare` and `setns` with it; rootless, the supervisor allows none either",
		Promises: []string{"B2"}, Tests: []string{"e2e TestB02_CallsThatLedOut", "e2e TestB02_NoNewPrivilegesAndSeccomp"},
	},
	{
		ID: "K3", Attack: "Other processes through `/proc/1/root`, `/proc/PID/ns`, `ptrace`, `process_vm_readv`, `pidfd_getfd`",
		Fell:   []string{"runc (CVE-2019-5736, CVE-2024-21626)"},
		Status: Closed, Answer: "PID 1 can't be inspected or traced by its own user. Room, guard and supervisor have no pid in a worker",
		Promises: []string{"B6", "B12"}, Tests: []string{"e2e TestB06_OtherProcesses", "e2e TestB41_InitIsNeverDumpable"},
	},
	{
		ID: "K4", Attack: "Writing `/proc/sys`, `/proc/sysrq-trigger`, `/sys`, `release_agent`, `core_pattern`, `uevent_helper`; reading `/proc/kcore`, `/proc/keys`",
		Fell:   []string{"Docker, privileged (release_agent, CVE-2022-0492)"},
		Status: Closed, Answer: "Read-only, masked, or namespaced where the kernel can; visible cgroups begin at the worker's",
		Promises: []string{"B3", "B6"}, Tests: []string{"e2e TestB03_TheKernelsFiles"},
	},
	{
		ID: "K5", Attack: "Mounting a file system, `/` or another `/proc`, or removing the read-only flag",
		Status: Closed, Answer: "No capability, and seccomp refuses the calls; rootless, mount flags are locked too",
		Promises: []string{"B2", "B3"}, Tests: []string{"e2e TestB03_NoMountOfItsOwn", "e2e TestB03_ReadOnlyButWhatIsDeclared"},
	},
	{
		ID: "K6", Attack: "Mount propagation, into the worker or out of it",
		Status: Closed, Answer: "A worker's mounts are private, and binds exclude what is mounted below their source",
		Promises: []string{"B7"}, Tests: []string{"e2e TestB03_MountsOfLaterStayApart"},
	},
	{
		ID: "K7", Attack: "Devices: `/dev/kvm`, `/dev/mem`, `/dev/fuse`, disks, `mknod`",
		Status: Closed, Answer: "`/dev` has six devices that hold nothing; `mknod` needs a capability, and other mounts ignore devices",
		Promises: []string{"B6"}, Tests: []string{"e2e TestB06_Devices"},
	},
	{
		ID: "K8", Attack: "Setuid programs or file capabilities, in the image or a mount",
		Status: Closed, Answer: "no_new_privs: they run as their caller",
		Promises: []string{"B2", "B4"}, Tests: []string{"e2e TestB02_SetuidFilesGiveNothing"},
	},
	{
		ID: "K9", Attack: "Abstract sockets of the machine",
		Fell:   []string{"containerd (CVE-2020-15257)"},
		Status: Gone, Answer: "They belong to a network namespace; a worker's has only workers",
		Promises: []string{"B20"}, Tests: []string{"e2e TestB26_AbstractSocketsOfTheHost"},
	},
	{
		ID: "K10", Attack: "Signals to everybody, or to a pid of the machine",
		Status: Gone, Answer: "Processes without a pid in the worker get none, even with the same user, as on a rootless engine",
		Promises: []string{"B6"}, Tests: []string{"e2e TestB06_SignalsStayInside"},
	},
	{
		ID: "K11", Attack: "Leaked descriptors: of the host, a directory, a cgroup",
		Fell:   []string{"runc (CVE-2024-21626)"},
		Status: Closed, Answer: "All are close-on-exec. The working directory is entered from inside, through no magic link",
		Promises: []string{"B6"}, Tests: []string{"e2e TestB06_NoDescriptorLeaks", "e2e TestB06_WorkdirIsEnteredFromInside"},
	},
	{
		ID: "K12", Attack: "Typing into the terminal of who started the worker (TIOCSTI)",
		Fell:   []string{"su, bubblewrap before 0.1.7 (CVE-2017-5226)"},
		Status: Gone, Answer: "A worker's terminal is made inside. The host gets its bytes, never its descriptor",
		Promises: []string{"B43"}, Tests: []string{"e2e TestB43_NothingIsTypedOnTheHost"},
	},
	{
		ID: "K13", Attack: "Swapping a directory for a link between check and mount",
		Fell:   []string{"runc (CVE-2021-30465)"},
		Status: Closed, Answer: "Another worker's source is pinned in a mount above it. The namespace engine opens each source once, following no link",
		Remedy:   "Docker takes a path: a host program that may write there can swap it while a worker starts",
		Promises: []string{"B7"}, Tests: []string{"e2e TestB07_SourcesArePinned", "e2e TestB07_SourcesThatAreSwapped"},
	},
	{
		ID: "K14", Attack: "Killing the namespace engine's supervisor",
		Status: Closed, Answer: "All its containers end with it (it is their PID 1); no worker reaches it",
		Promises: []string{"B21"}, Tests: []string{"e2e TestB21_SupervisorKilled", "e2e TestB06_OtherProcesses"},
	},
	{
		ID: "K15", Attack: "A foreign runtime, in the file or as the engine's default: `nvidia` with a device variable, another kernel",
		Status: Closed, Answer: "Only runtimes that share the kernel and add nothing are accepted; without a room, also [those of your settings](engines.md), which `up` names. Room and guard name a runtime of the machine's kernel. A name is not believed: what a container is, is compared before it is ready",
		Promises: []string{"B6", "B30"}, Tests: []string{"compose TestRuntimes", "compose TestRuntimeOfRoomAndGuard", "e2e TestB30_RuntimesThatLie", "internal/app TestRuntimesOfTheUser", "internal/cli/lifecycle TestWorkerLine", "internal/app TestGrantThatNoUpHasSaid"},
	},
	{
		ID: "K16", Attack: "A local model's file, or a request, takes its server over; a page of a browser or another user asks it",
		Fell:   []string{"Ollama (CVE-2024-28224, rebinding)", "llama.cpp (CVE-2026-21869)", "vLLM (CVE-2026-22807)"},
		Status: Closed, Answer: "Its room has no network, and no mount but the model, read-only; the host alone reaches it, through its door, with a key; requests of pages and for other hosts than localhost are refused",
		Remedy:   "`--loopback` and the standalone Compose file have a port of 127.0.0.1: the key is the only lock there",
		Promises: []string{"B3", "B20", "B44"}, Tests: []string{"e2e TestModel", "internal/model/service TestGateway", "e2e TestStandaloneModel", "e2e TestStandaloneModel_Knobs"},
	},
}
