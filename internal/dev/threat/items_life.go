package threat

// lifeItems: moments in which rules are not there yet, or no more.
var lifeItems = []Item{
	{
		ID: "L1", Attack: "A first instruction before the rules",
		Fell:   []string{"klangk#2277", "moat#318"},
		Status: Gone, Answer: "A room without rules and without a guard has no way out either. The gate lets a worker wait for a network that works, not for one that is closed",
		Promises: []string{"B21"}, Tests: []string{"internal/workerinit TestWaitsForRoom", "e2e TestB21_NothingLeavesDuringUp", "e2e TestB21_ExecBeforeReadiness"},
	},
	{
		ID: "L2", Attack: "Rules that fail to load leave everything open",
		Fell:   []string{"js2#4673", "claude-code#91327, #35197, #55623", "OpenSandbox (OSEP-0001)", "dstack#792"},
		Status: Gone, Answer: "A room that can't be set up hands no sockets over: closed. Names are not looked up at the start, so none can stop it",
		Promises: []string{"B21", "B29"}, Tests: []string{"internal/room TestSetUpFails", "e2e TestB29_UnresolvableNameStopsNothing"},
	},
	{
		ID: "L3", Attack: "A flush that takes the engine's own rules along",
		Fell:   []string{"devcontainer-features#30", "claude-code's init-firewall.sh"},
		Status: Gone, Answer: "The engine has no rules in a room; ours are made once, in a namespace that is empty",
		Promises: []string{"B20"}, Tests: []string{"internal/room TestRulesReadBack", "internal/room TestRedirectReplacesPorts"},
	},
	{
		ID: "L4", Attack: "A guard that restarts takes the workers' network along",
		Fell:   []string{"gluetun#641", "compose#6626, #10263"},
		Status: Closed, Answer: "The network belongs to the room, which stays. It keeps copies of all sockets: connections wait until the next guard has them",
		Promises: []string{"B29"}, Tests: []string{"internal/guard TestGuardCrash", "internal/room TestGuardComesAgain", "e2e TestB29_GuardKilled"},
	},
	{
		ID: "L5", Attack: "Connections that outlive the line that allowed them",
		Fell:   []string{"every peer that accepts ESTABLISHED first"},
		Status: Closed, Answer: "The guard holds both ends and closes them. No rule accepts anything because it was accepted before, or is related to what was (FTP and SIP helpers)",
		Promises: []string{"B27"}, Tests: []string{"internal/guard TestRevoke", "internal/guard TestB27_LiveDeny", "internal/guard TestB27_PolicyReplaced", "e2e TestB27_RemovedLine"},
	},
	{
		ID: "L6", Attack: "Connections from before the rules",
		Status: Gone, Answer: "There can be none: a room is born with loopback alone",
		Promises: []string{"B20", "B21"}, Tests: []string{"e2e TestB21_NothingLeavesDuringUp"},
	},
	{
		ID: "L7", Attack: "The guard's ports taken while it is away",
		Fell:   []string{"engines that let everybody bind low ports in a container"},
		Status: Closed, Answer: "The room holds the sockets all the time, and ports below 1024 need a capability that no worker has",
		Promises: []string{"B22"}, Tests: []string{"internal/room TestGuardsPorts", "e2e TestB22_TheRoomCantBeChanged"},
	},
	{
		ID: "L8", Attack: "Rules in one backend of iptables, looked for in the other",
		Fell:   []string{"podman#25952", "WSL#7948"},
		Status: Closed, Answer: "Rules go to the kernel by netlink, in one transaction and without a program. Where the kernel can't have them, the room fails and stays closed",
		Promises: []string{"B20", "B21"}, Tests: []string{"internal/room TestRulesReadBack", "internal/room TestRefusalNamesTheRule", "internal/room TestSetUpFails"},
	},
	{
		ID: "L9", Attack: "A worker put back from a snapshot, into another network",
		Fell:   []string{"benchflow#785"},
		Status: Open, Answer: "`up` makes what it starts and finds a worker that doesn't belong to its room; it doesn't see containers that other programs start",
		Remedy:   "Don't commit, checkpoint or restore workers by other means than `workshop up`",
		Promises: []string{"B21"}, Tests: []string{"e2e TestB21_EachRestartedAlone"},
	},
	{
		ID: "L10", Attack: "Denials that nobody sees, because LOG is silent in a namespace",
		Fell:   []string{"gh-aw-firewall's LOG rules in the container"},
		Status: Closed, Answer: "NFLOG belongs to the namespace; the guard reads it by a socket of the room, counts exactly, and reports what the kernel lost",
		Promises: []string{"B28"}, Tests: []string{"internal/room TestDenied", "internal/guard TestEventsAreExact", "internal/guard TestEveryRefusalIsOneEvent", "internal/guard TestFloodIsCounted", "internal/guard/nflog TestReadCountsWhatTheKernelLost"},
	},
	{
		ID: "L11", Attack: "A crash of the guard to be rid of a live deny, or of what a budget has spent",
		Fell:   []string{"this project before it kept them: a request that crashed the guard took a live deny along"},
		Status: Closed, Answer: "They are recorded before they are answered or sent, in memory that the room's PID 1 holds, and in force again before anything of the room is served. What can't be read closes the room until `firewall reload`. Windows and ends go by a clock that nobody sets. What a live change or learning opened is closed again",
		Promises: []string{"B27", "B60"}, Tests: []string{"internal/guard TestB27_OutlivesTheGuard", "internal/guard TestUnreadableIsClosed", "internal/guard/kept TestKilledWhileWriting", "internal/guard/proxy TestWindowOutlivesTheGuard", "internal/room/handover TestKeepRefuses", "e2e TestB21_LiveChangeEndsWithTheGuard", "e2e TestB60_UnreadableIsClosed"},
	},
	{
		ID: "L12", Attack: "A connection that makes the guard panic, for all rooms: an upgrade with a body, early answers, resets at every point",
		Fell:   []string{"this project before one goroutine at a time owned what it reads: 5 restarts in 240 requests"},
		Status: Closed, Answer: "What reads a request belongs to one goroutine at a time, and an upgrade is a GET without a body. Below that, a panic ends one connection, query or request: both sides are reset, its buffers aren't used again, it is counted and an event. After ten within a minute the guard exits, and is started again",
		Promises: []string{"B60"}, Tests: []string{"internal/guard/proxy TestB60_UpgradeWithBody", "internal/guard/proxy TestB60_EveryPoint", "internal/guard/proxy TestB60_EarlyAnswers", "internal/guard/proxy TestB60_PanicEndsTheConnection", "internal/guard TestB60_ResetsAtEveryPoint", "internal/guard TestB60_AcceptRecovers", "internal/guard TestB60_TooManyPanics", "internal/guard/panics TestB60_EveryGoroutine"},
	},
}

// sharedItems: what a namespace shares, and what stands around it.
var sharedItems = []Item{
	{
		ID: "S1", Attack: "The guard's control over TCP or a socket, from a worker; services of other workers on loopback",
		Fell:   []string{"OpenSandbox (policy over HTTP in the same namespace)"},
		Status: Open, Answer: "The control is a unix socket in the guard's own memory, reached by an exec from the host alone. But workers of one room share loopback: that is what a room is",
		Remedy:   "`room: own` for a worker whose servers others must not reach",
		Promises: []string{"B22"}, Tests: []string{"internal/guard TestB22_ControlIsTheHosts", "internal/room/handover TestOtherUsersAreRefused", "e2e TestB20_RoomsAreApart"},
	},
	{
		ID: "S2", Attack: "Abstract unix sockets, which no file system holds apart",
		Status: Closed, Answer: "None of our programs has one. Those of workers are shared in a room",
		Remedy:   "`room: own`",
		Promises: []string{"B22"}, Tests: []string{"e2e TestB22_TheRoomCantBeChanged"},
	},
	{
		ID: "S3", Attack: "Squatting on a port that the guard uses",
		Status: Closed, Answer: "As L7; with the capability for low ports the socket is still taken, also for SO_REUSEPORT",
		Promises: []string{"B22"}, Tests: []string{"internal/room TestGuardsPorts", "e2e TestB22_RootWithDefaultCapabilities"},
	},
	{
		ID: "S4", Attack: "hosts, resolv.conf and hostname, which joined containers share as files",
		Status: Closed, Answer: "Read-only in a worker. The guard isn't joined, so it has others (D12)",
		Promises: []string{"B3"}, Tests: []string{"e2e TestB03_ReadOnlyButWhatIsDeclared"},
	},
	{
		ID: "S5", Attack: "Two workers behind one address, so that one policy serves both",
		Status: Gone, Answer: "A room has one policy, and its socket tells the guard which room it is. Workers with other policies have other rooms",
		Remedy:   "A mount that workers of two rooms share, and one of them may write, joins them: unix sockets in it know no network namespace",
		Promises: []string{"B20", "B25"}, Tests: []string{"workshop TestRooms", "e2e TestB20_RoomsAreApart"},
	},
	{
		ID: "S6", Attack: "Using up what is shared: connections, tracked flows, questions, the log",
		Status: Open, Answer: "The guard bounds the connections, large heads and questions of all rooms together and guarantees half of each to its rooms in equal shares; with all of them in their worst state it stays below 80 % of its memory. Within a room nothing divides them. The kernel limits tracked flows for each room by itself, but their memory and that of sockets is the machine's; the guard's processor is shared by its rooms",
		Remedy:   "Workshops of their own have guards of their own; on a machine for strangers, use virtual machines",
		Promises: []string{"B5", "B60"}, Tests: []string{"internal/guard TestManyConnections", "internal/guard TestWorstState", "internal/guard TestWorstStateOfPublishedPorts", "internal/guard TestDNSFloodOfARoom", "internal/guard TestLargeHeadsCostBoundedMemory", "internal/guard TestFloodIsCounted"},
	},
	{
		ID: "S7", Attack: "The engine's socket, host namespaces, privileged containers, capabilities",
		Fell:   []string{"harden-runner, switched off by way of the engine (Cacheract#15)"},
		Status: Closed, Answer: "The file can't ask for them; what the compile makes is checked again before every `up`",
		Promises: []string{"B1", "B2", "B6", "B7"}, Tests: []string{"compose TestCheckFindsEachViolation", "compose TestRolesAreNotLabels", "e2e TestB01_NoCapabilities", "e2e TestB06_NothingOfTheHost", "e2e TestB07_RefusedSources"},
	},
	{
		ID: "S8", Attack: "Using up what the kernel counts for each uid and not for each cgroup: instances and watches of inotify, epoll watches, keys, message queues, pending signals and timers, pages of pipes, descriptors under way in sockets, and, rootless, processes and user namespaces; and what it counts for the whole machine: terminals (kernel.pty.max), asynchronous requests (fs.aio-max-nr), open files (fs.file-max)",
		Status: Open, Answer: "Tools go on: a worker's door is polled where the kernel gives no watch, and a worker is ready once that is so. A worker may open 4096 files, a quarter of what the guard may: descriptors under way in its sockets leave room for the supervisor's, the room's and the guard's (several workers of a uid that send at once share that count). Programs of the user with the workers' uid get EMFILE or ENOSPC until the worker ends; one of ours without an epoll watch exits with 5 and says what to do, `workshop down` too, and a guard or a room of that uid that is started then can't begin. Of the machine's terminals the kernel keeps kernel.pty.reserve for its own mount; on the namespace engine a worker may have 512 (devpts max=), on Docker, which has no option for that, all others. Asynchronous requests have no limit for less than the machine, and are needed (as Docker's, our filter lets io_setup through): programs get EAGAIN. Open files are bounded by 4096 for each process and by the number of processes (B5); root isn't held to fs.file-max",
		Remedy:   "Where all epoll watches are in use: `kill -KILL $(pgrep -u UID -f 'workshop-init supervise')` for the namespace engine, `sudo workshop down` for Docker. `user:` with a uid of its own for a worker that isn't trusted with yours (Docker, or as root); more instances: `sysctl fs.inotify.max_user_instances=1024`, terminals: `sysctl kernel.pty.max=65536`, requests: `sysctl fs.aio-max-nr=1048576`; `workshop down`",
		Promises: []string{"B5", "B60"}, Tests: []string{"compose TestCheckFindsEachViolation", "internal/lib/watchprobe TestNoWatches", "internal/engine/namespace/supervisor TestTooManyUnderWay", "internal/toolbox TestWithoutWatches", "internal/toolbox TestWhenRemovedWithoutWatches"},
	},
	{
		ID: "S9", Attack: "Locks on files that the worker only reads: `flock -x` takes a descriptor that is open for reading, over `ro` mounts and `image: host` too; programs of the host then wait for theirs (package managers, git's and builds' lock files, databases)",
		Status: Open, Answer: "No mount option keeps it away, and a filter of system calls sees no file. A lock ends with its worker. Locks that want a descriptor open for writing (fcntl, a write lock) can't be had over `ro`",
		Remedy:   "See who holds one with `lslocks`, end it with `workshop down`; a mount with `copy: true` has files of its own; mount what is needed, not `/` or a home",
		Promises: []string{"B3"},
	},
	{
		ID: "S10", Attack: "A worker with the guard's uid, by `user:` or because nothing better was known, that uses up what the kernel counts for each uid: every room's network ends",
		Fell:   []string{"this project before it kept 65531 and 65532 for its own: a workshop without a network cut those of all others"},
		Status: Closed, Answer: "65531 and 65532 are the outlet's and the guard's: refused as `user:`, as the caller's or the project's owner's, for `exec --user` and by the check before every `up`; the fallback is 65530. Rootless there is one uid, the caller's: see S8",
		Promises: []string{"B60"}, Tests: []string{"workshop TestInvalid", "compose TestCheckFindsEachViolation", "compose TestWithFactsProblems", "internal/facts TestUser", "internal/app TestIsReserved"},
	},
	{
		ID: "S11", Attack: "Stopping (SIGSTOP) what an engine starts in a container, before it is its program: some versions of Docker hold the container's lock meanwhile, and answer nothing about it for ever; or putting a FIFO where the engine's archive reads",
		Fell:   []string{"this project before its commands had a limit: ps, logs, up, down, exec and cp on Docker waited for ever"},
		Status: Closed, Answer: "Where a worker has a door, commands of its own user, copies, tools and the check whether it is ready come by it, and never by the engine. Questions about one container have a limit of time, and ps says which doesn't answer. `down` has a worker's PID 1 end it, told at the door, where the engine can't; somebody's own `docker exec` may freeze until then. An engine on another machine has no door: there `down` gives up after a minute, and says so",
		Promises: []string{"B60"}, Tests: []string{"e2e TestB60_StoppedExecFreezesNoCommand", "e2e TestB60_CopyOfWhatIsExchanged", "internal/toolbox TestDoorEndsTheWorker", "internal/toolbox/client TestHelloHasALimit", "internal/engine/docker TestSessionByTheDoorAlone", "internal/engine/docker TestDoorOf"},
	},
}
