package threat

// kernelItems: out of a container by the kernel that all share.
var kernelItems = []Item{
	{
		ID: "K1", Attack: "System calls and sockets that have led out of containers: keyrings, `bpf`, `io_uring`, `userfaultfd`, `open_by_handle_at`, `clone3`, leases of files, AF_VSOCK, AF_ALG, AF_PACKET",
		Fell:   []string{"Docker before 1.0 (shocker.c)", "runc and its kernel (CVE-2022-0185)"},
		Status: Closed, Answer: "One seccomp profile on every engine refuses them, whatever their arguments; a worker has no capability that they could use",
		Remedy:   "The kernel's other calls are open to a worker, and a fault in one of them is a fault of the fence; on a machine for strangers, use virtual machines",
		Promises: []string{"B1", "B2"}, Tests: []string{"e2e TestB02_CallsThatLedOut", "e2e TestB02_NoNewPrivilegesAndSeccomp"},
	},
	{
		ID: "K2", Attack: "A user namespace of its own, to be root over others in it",
		Status: Closed, Answer: "seccomp refuses `clone`, `clone3`, `unshare` and `setns` with it. Rootless, the supervisor also allows no namespace below its own",
		Promises: []string{"B2"}, Tests: []string{"e2e TestB02_CallsThatLedOut", "e2e TestB02_NoNewPrivilegesAndSeccomp"},
	},
	{
		ID: "K3", Attack: "`/proc/1/root`, `/proc/PID/ns`, `ptrace`, `process_vm_readv`, `pidfd_getfd`: what another process is, has and sees",
		Fell:   []string{"runc (CVE-2019-5736, CVE-2024-21626)"},
		Status: Closed, Answer: "PID 1 can't be looked into or traced by its own user, since it can't be dumped. The room, the guard and the supervisor are in other PID namespaces, and so have no number in a worker, also where all are of one user",
		Promises: []string{"B6", "B12"}, Tests: []string{"e2e TestB06_OtherProcesses", "e2e TestB41_InitIsNeverDumpable"},
	},
	{
		ID: "K4", Attack: "Writing to `/proc/sys`, `/proc/sysrq-trigger`, `/sys`, `release_agent`, `core_pattern`, `uevent_helper`; reading `/proc/kcore`, `/proc/keys`",
		Fell:   []string{"Docker, privileged (release_agent, CVE-2022-0492)"},
		Status: Closed, Answer: "Read-only or masked, and of namespaces of the worker's own where the kernel has such. The control groups that a worker sees begin at its own",
		Promises: []string{"B3", "B6"}, Tests: []string{"e2e TestB03_TheKernelsFiles"},
	},
	{
		ID: "K5", Attack: "Mounting: a file system, a bind of `/`, another `/proc`, or the read-only flag taken away",
		Status: Closed, Answer: "No capability to, and seccomp refuses the old calls and the new ones. Rootless, the mounts are locked to their flags besides",
		Promises: []string{"B2", "B3"}, Tests: []string{"e2e TestB03_NoMountOfItsOwn", "e2e TestB03_ReadOnlyButWhatIsDeclared"},
	},
	{
		ID: "K6", Attack: "What is mounted on the machine later, below a source, is handed on to the worker; or the worker's to the machine",
		Status: Closed, Answer: "Mounts of a worker are private, and binds don't take along what is mounted below their source",
		Promises: []string{"B7"}, Tests: []string{"e2e TestB03_MountsOfLaterStayApart"},
	},
	{
		ID: "K7", Attack: "Devices: `/dev/kvm`, `/dev/mem`, `/dev/fuse`, disks; nodes that are made",
		Status: Closed, Answer: "`/dev` has six devices that hold nothing; `mknod` needs a capability, and every other mount ignores devices",
		Promises: []string{"B6"}, Tests: []string{"e2e TestB06_Devices"},
	},
	{
		ID: "K8", Attack: "Programs with the setuid bit or capabilities of their own, in the image or in a mount",
		Status: Closed, Answer: "no_new_privs: they run as whoever starts them",
		Promises: []string{"B2", "B4"}, Tests: []string{"e2e TestB02_SetuidFilesGiveNothing"},
	},
	{
		ID: "K9", Attack: "Abstract sockets of the machine, which no directory protects",
		Fell:   []string{"containerd (CVE-2020-15257)"},
		Status: Gone, Answer: "They belong to a network namespace, and a worker's has nobody but workers in it",
		Promises: []string{"B20"}, Tests: []string{"e2e TestB26_AbstractSocketsOfTheHost"},
	},
	{
		ID: "K10", Attack: "Signals to everybody, or to a number of the machine's",
		Status: Gone, Answer: "What has no number in a worker gets no signal from it. Rootless too, where guard and supervisor are of the same user",
		Promises: []string{"B6"}, Tests: []string{"e2e TestB06_SignalsStayInside"},
	},
	{
		ID: "K11", Attack: "Descriptors that were left open: of the host, of a directory, of a control group",
		Fell:   []string{"runc (CVE-2024-21626)"},
		Status: Closed, Answer: "What starts a container marks everything as to be closed. Of the first process, of an exec and of a tool is looked at what they have. A working directory, which may lie below a writable mount, is entered by workshop-init from inside: no engine takes a path through a mount, and no magic link is followed",
		Promises: []string{"B6"}, Tests: []string{"e2e TestB06_NoDescriptorLeaks", "e2e TestB06_WorkdirIsEnteredFromInside"},
	},
	{
		ID: "K12", Attack: "Typing into the terminal of the person who started the worker (TIOCSTI)",
		Fell:   []string{"su, bubblewrap before 0.1.7 (CVE-2017-5226)"},
		Status: Gone, Answer: "A worker's terminal is made in the worker; its bytes come to the host as bytes, and never its descriptor",
		Promises: []string{"B43"}, Tests: []string{"e2e TestB43_NothingIsTypedOnTheHost"},
	},
	{
		ID: "K13", Attack: "Swapping a directory for a link while it is looked at and mounted: into a worker's mount, by another worker who may write above",
		Fell:   []string{"runc (CVE-2021-30465)"},
		Status: Closed, Answer: "What another worker has for a source is pinned in a mount above it. The namespace engine also opens each source once, following no link, and mounts what it has opened",
		Remedy:   "On Docker, whose engine takes a path, who may write there on the machine itself can swap it while a worker starts",
		Promises: []string{"B7"}, Tests: []string{"e2e TestB07_SourcesArePinned", "e2e TestB07_SourcesThatAreSwapped"},
	},
	{
		ID: "K14", Attack: "Ending what watches: the supervisor of the namespace engine",
		Status: Closed, Answer: "It is PID 1 of the namespace in which everything else runs: when it ends, however, the kernel ends the rest. No worker can reach it",
		Promises: []string{"B21"}, Tests: []string{"e2e TestB21_SupervisorKilled", "e2e TestB06_OtherProcesses"},
	},
	{
		ID: "K15", Attack: "`runtime: nvidia` with `network: none` and a variable that names devices, or a runtime with another kernel, from a repository; or the same where the engine has such a runtime as its default",
		Status: Closed, Answer: "Only runtimes that share the machine's kernel and add nothing are taken, in a room and without one; without one, those that the user's settings name besides (`runtimes:`). `up` names a worker's runtime",
		Promises: []string{"B6", "B30"}, Tests: []string{"compose TestRuntimes", "internal/app TestRuntimesOfTheUser", "internal/cli/lifecycle TestRuntimeIsSaid"},
	},
}
