package threat

// lifeItems: moments in which rules are not there yet, or no more.
var lifeItems = []Item{
	{
		ID: "L1", Attack: "Code that runs before the rules",
		Fell:   []string{"klangk#2277", "moat#318"},
		Status: Gone, Answer: "A room without rules or guard has no way out; the worker waits for the network",
		Promises: []string{"B21"}, Tests: []string{"internal/workerinit TestWaitsForRoom", "e2e TestB21_NothingLeavesDuringUp", "e2e TestB21_ExecBeforeReadiness"},
	},
	{
		ID: "L2", Attack: "Rules that fail to load leave everything open",
		Fell:   []string{"js2#4673", "claude-code#91327, #35197, #55623", "OpenSandbox (OSEP-0001)", "dstack#792"},
		Status: Gone, Answer: "Such a room hands over no sockets, and no name is looked up at start",
		Promises: []string{"B21", "B29"}, Tests: []string{"internal/room TestSetUpFails", "e2e TestB29_UnresolvableNameStopsNothing"},
	},
	{
		ID: "L3", Attack: "A flush that removes the engine's rules too",
		Fell:   []string{"devcontainer-features#30", "claude-code's init-firewall.sh"},
		Status: Gone, Answer: "The engine has none in a room; ours are made once",
		Promises: []string{"B20"}, Tests: []string{"internal/room TestRulesReadBack", "internal/room TestRedirectReplacesPorts"},
	},
	{
		ID: "L4", Attack: "A guard restart that takes the network down",
		Fell:   []string{"gluetun#641", "compose#6626, #10263"},
		Status: Closed, Answer: "The room keeps copies of all sockets; connections wait for the next guard",
		Promises: []string{"B29"}, Tests: []string{"internal/guard TestGuardCrash", "internal/room TestGuardComesAgain", "e2e TestB29_GuardKilled"},
	},
	{
		ID: "L5", Attack: "Connections that outlive their line",
		Fell:   []string{"every design that accepts ESTABLISHED first"},
		Status: Closed, Answer: "The guard holds and closes both ends; no rule accepts traffic by its state",
		Promises: []string{"B27"}, Tests: []string{"internal/guard TestRevoke", "internal/guard TestB27_LiveDeny", "internal/guard TestB27_PolicyReplaced", "e2e TestB27_RemovedLine"},
	},
	{
		ID: "L6", Attack: "Connections from before the rules",
		Status: Gone, Answer: "A room starts with loopback only",
		Promises: []string{"B20", "B21"}, Tests: []string{"e2e TestB21_NothingLeavesDuringUp"},
	},
	{
		ID: "L7", Attack: "The guard's ports taken while it is away",
		Fell:   []string{"engines that let everybody bind low ports in a container"},
		Status: Closed, Answer: "The room always holds the sockets, and ports below 1024 need a capability that no worker has",
		Promises: []string{"B22"}, Tests: []string{"internal/room TestGuardsPorts", "e2e TestB22_TheRoomCantBeChanged"},
	},
	{
		ID: "L8", Attack: "Rules in the wrong iptables backend",
		Fell:   []string{"podman#25952", "WSL#7948"},
		Status: Closed, Answer: "Rules go to the kernel by netlink, in one transaction; if that fails, the room stays closed",
		Promises: []string{"B20", "B21"}, Tests: []string{"internal/room TestRulesReadBack", "internal/room TestRefusalNamesTheRule", "internal/room TestSetUpFails"},
	},
	{
		ID: "L9", Attack: "A worker restored from a snapshot into another network",
		Fell:   []string{"benchflow#785"},
		Status: Open, Answer: "`up` finds a worker outside its room, but not containers that other programs start",
		Remedy:   "Start workers only by `workshop up`: don't commit, checkpoint or restore them",
		Promises: []string{"B21"}, Tests: []string{"e2e TestB21_EachRestartedAlone"},
	},
	{
		ID: "L10", Attack: "Unseen denials",
		Fell:   []string{"gh-aw-firewall's LOG rules in the container"},
		Status: Closed, Answer: "The guard reads NFLOG in the room, counts exactly, and reports kernel losses",
		Remedy:   "24 MB of log are kept: a flood pushes old events out, the counters stay exact. Collect evidence elsewhere",
		Promises: []string{"B28"}, Tests: []string{"internal/room TestDenied", "internal/guard TestEventsAreExact", "internal/guard TestEveryRefusalIsOneEvent", "internal/guard TestFloodIsCounted", "internal/guard/nflog TestReadCountsWhatTheKernelLost"},
	},
	{
		ID: "L11", Attack: "Crashing the guard to lose a live deny or a spent budget",
		Fell:   []string{"this project: a request that crashed the guard removed a live deny"},
		Status: Closed, Answer: "Both are recorded by the room before they take effect, and enforced before it is served again. Unreadable records close the room until `firewall reload`",
		Remedy:   "Live denies end with `down`. Budgets restart when room and guard end together (`restart`, a reboot, the machine's OOM), which no worker can cause",
		Promises: []string{"B27", "B60"}, Tests: []string{"internal/guard TestB27_OutlivesTheGuard", "internal/guard TestB27_OutlivesTheRooms", "internal/guard TestUnreadableIsClosed", "internal/guard TestUnreadableDenies", "internal/guard/kept TestKilledWhileWriting", "internal/guard/proxy TestWindowOutlivesTheGuard", "internal/room/handover TestKeepRefuses", "e2e TestB21_LiveChangeEndsWithTheGuard", "e2e TestB27_DenyOutlivesRooms", "e2e TestB60_UnreadableIsClosed"},
	},
	{
		ID: "L12", Attack: "Connections that panic the guard for all rooms",
		Fell:   []string{"this project: 5 restarts in 240 requests"},
		Status: Closed, Answer: "A panic resets one connection, query or request, and is an event; after ten a minute the guard restarts",
		Promises: []string{"B60"}, Tests: []string{"internal/guard/proxy TestB60_UpgradeWithBody", "internal/guard/proxy TestB60_EveryPoint", "internal/guard/proxy TestB60_EarlyAnswers", "internal/guard/proxy TestB60_PanicEndsTheConnection", "internal/guard TestB60_ResetsAtEveryPoint", "internal/guard TestB60_AcceptRecovers", "internal/guard TestB60_TooManyPanics", "internal/guard/panics TestB60_EveryGoroutine"},
	},
}

// sharedItems: what a namespace shares, and what stands around it.
var sharedItems = []Item{
	{
		ID: "S1", Attack: "The guard's control socket, or other workers' services on loopback",
		Fell:   []string{"OpenSandbox (policy over HTTP in the same namespace)"},
		Status: Open, Answer: "The control socket is on the guard's own memory file system, reached only by an exec from the host. But workers of a room share loopback",
		Remedy:   "`room: own` for a worker whose servers others must not reach",
		Promises: []string{"B22"}, Tests: []string{"internal/guard TestB22_ControlIsTheHosts", "internal/room/handover TestOtherUsersAreRefused", "e2e TestB20_RoomsAreApart"},
	},
	{
		ID: "S2", Attack: "Abstract unix sockets",
		Status: Closed, Answer: "Our programs have none. Workers of a room share theirs",
		Remedy:   "`room: own` separates them",
		Promises: []string{"B22"}, Tests: []string{"e2e TestB22_TheRoomCantBeChanged"},
	},
	{
		ID: "S3", Attack: "Taking a port that the guard uses",
		Status: Closed, Answer: "As L7; even with the capability the port is in use, also with SO_REUSEPORT",
		Promises: []string{"B22"}, Tests: []string{"internal/room TestGuardsPorts", "e2e TestB22_RootWithDefaultCapabilities"},
	},
	{
		ID: "S4", Attack: "hosts, resolv.conf and hostname, shared as files",
		Status: Closed, Answer: "Read-only in a worker; the guard isn't joined (D12)",
		Promises: []string{"B3"}, Tests: []string{"e2e TestB03_ReadOnlyButWhatIsDeclared"},
	},
	{
		ID: "S5", Attack: "Two workers behind one policy",
		Status: Gone, Answer: "A room has one policy; workers with different policies have different rooms",
		Remedy:   "A mount of two rooms, writable in one, joins them: by files, and by unix sockets, also over `ro` mounts. Hand results over by `copy: true`",
		Promises: []string{"B20", "B25"}, Tests: []string{"workshop TestRooms", "e2e TestB20_RoomsAreApart"},
	},
	{
		ID: "S6", Attack: "Exhausting what rooms share: connections, tracked flows, queries, the log",
		Status: Open, Answer: "The guard [bounds](security.md#what-is-not-protected) connections, large heads and queries, half of each in equal shares for its rooms; its worst state stays below 80 % of its memory. The kernel limits tracked flows per room. But their memory, that of sockets and the guard's CPU are shared",
		Remedy:   "`room: own` has a share of its own, another workshop another guard. For strangers, use virtual machines",
		Promises: []string{"B5", "B60"}, Tests: []string{"internal/guard TestManyConnections", "internal/guard TestWorstState", "internal/guard TestWorstStateOfPublishedPorts", "internal/guard TestDNSFloodOfARoom", "internal/guard TestLargeHeadsCostBoundedMemory", "internal/guard TestFloodIsCounted"},
	},
	{
		ID: "S7", Attack: "The engine's socket, host namespaces, privileged containers, capabilities",
		Fell:   []string{"harden-runner, switched off by way of the engine (Cacheract#15)"},
		Status: Closed, Answer: "The file can't ask for them, and `up` checks the compiled project again",
		Promises: []string{"B1", "B2", "B6", "B7"}, Tests: []string{"compose TestCheckFindsEachViolation", "compose TestRolesAreNotLabels", "e2e TestB01_NoCapabilities", "e2e TestB06_NothingOfTheHost", "e2e TestB07_RefusedSources"},
	},
	{
		ID: "S8", Attack: "Exhausting what the kernel counts per uid: inotify and epoll watches, inotify instances, keys, message queues, queued signals and timers, pipe pages, descriptors in flight; rootless, processes and user namespaces. Or per machine: terminals, asynchronous requests, open files",
		Status: Open, Answer: "Tools go on without watches. At most 4096 open files and 1024 queued signals and timers leave descriptors in flight and signals for our and host programs (workers of one uid share these counts). But other programs of the uid get EMFILE or ENOSPC until the worker ends, our commands without an epoll watch exit with 5, and no new guard or room of that uid starts. Terminals on Docker (namespace engine: 512 a worker) and asynchronous requests have only the machine's limits",
		Remedy:   "Epoll watches in use: `kill -KILL $(pgrep -u UID -f 'workshop-init supervise')` (namespace engine) or `sudo workshop down` (Docker). Else `workshop down`, another `user:` for an untrusted worker (Docker, or as root), or `sysctl fs.inotify.max_user_instances=1024`, `kernel.pty.max=65536`, `fs.aio-max-nr=1048576`",
		Promises: []string{"B5", "B60"}, Tests: []string{"compose TestCheckFindsEachViolation", "internal/lib/watchprobe TestNoWatches", "internal/engine/namespace/supervisor TestTooManyUnderWay", "internal/toolbox TestWithoutWatches", "internal/toolbox TestWhenRemovedWithoutWatches", "e2e TestB03_LostMountEndsAFloodingWorker"},
	},
	{
		ID: "S9", Attack: "Locks on files that a worker only reads: `flock -x` needs no writable descriptor, works over `ro` mounts and `image: host`, and blocks host programs (package managers, git, databases)",
		Status: Open, Answer: "Nothing prevents it, but `ro` prevents fcntl write locks",
		Remedy:   "`lslocks` shows the holder, `workshop down` ends it. Use `copy: true`; mount what is needed, not `/` or a home",
		Promises: []string{"B3"},
	},
	{
		ID: "S10", Attack: "Exhausting the per-uid limits of the guard, under its uid",
		Fell:   []string{"this project: a workshop without a network cut those of all others"},
		Status: Closed, Answer: "No worker can have the uids of outlet (65531) and guard (65532): not by `user:`, `exec --user`, the caller or the project's owner. Rootless: S8",
		Promises: []string{"B60"}, Tests: []string{"workshop TestInvalid", "compose TestCheckFindsEachViolation", "compose TestWithFactsProblems", "internal/facts TestUser", "internal/app TestIsReserved"},
	},
	{
		ID: "S11", Attack: "SIGSTOP to what an engine starts in a container, or a FIFO where its archive reads: some Docker versions then never answer",
		Fell:   []string{"this project: ps, logs, up, down, exec and cp on Docker waited for ever"},
		Status: Closed, Answer: "Commands of the worker's own user, copies, tools and readiness checks don't use the engine, whose queries about one container time out. If the engine can't end a worker, `down` tells its PID 1 to",
		Remedy:   "A `docker exec` by hand may hang until then. A remote engine has no dial-in directory: `down` gives up after a minute",
		Promises: []string{"B60"}, Tests: []string{"e2e TestB60_StoppedExecFreezesNoCommand", "e2e TestB60_CopyOfWhatIsExchanged", "internal/toolbox TestDoorEndsTheWorker", "internal/toolbox/client TestHelloHasALimit", "internal/engine/docker TestSessionByTheDoorAlone", "internal/engine/docker TestDoorOf"},
	},
}
