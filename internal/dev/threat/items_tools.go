package threat

// toolItems: the tools of a worker, against what runs beside them with the same
// uid, and against what their answers may do on the host.
var toolItems = []Item{
	{
		ID: "W1", Attack: "Answers of a tool that a program of the worker wrote: the session's descriptors or memory, a listener in its place, a connection that is made first",
		Status: Closed, Answer: "Nothing in a worker listens. The host's directory is read-only there; each side asks the kernel who the other is, and a session belongs to the worker's PID 1 alone. Neither can be traced or looked into from the first instruction",
		Promises: []string{"B41"}, Tests: []string{"internal/toolbox TestNotDumpable", "internal/toolbox TestDoorRefusesOthers", "internal/toolbox TestDoorIsReadOnly", "internal/toolbox TestDoorWantsOutside", "e2e TestB41_NobodyInTheWorkerForgesASession", "e2e TestB41_InitIsNeverDumpable"},
	},
	{
		ID: "W2", Attack: "A tool that the file doesn't list, or one beyond its limit: `Bash(git:*)` with other variables, several commands, `git -c alias.x='!sh'`",
		Status: Open, Answer: "Host and toolbox compare, by what PID 1 was started with; under a limit, a line must be one plain command without variables. But a program that is allowed may run others, and so may one that a writable directory of `PATH` holds: a limit keeps a model at its task, and what it can reach is the container's to say",
		Remedy:   "Give programs that run no others, and no mount in `PATH`; a worker of its own for what must stay apart",
		Promises: []string{"B41"}, Tests: []string{"internal/toolbox TestOptIn", "e2e TestB41_OnlyWhatTheFileLists"},
	},
	{
		ID: "W3", Attack: "Processes that outlive their call or session: daemons, forks without an end, reapers of their own, ignored signals",
		Status: Open, Answer: "All of it stays below the session and ends with it, also where the session is killed or stopped. Only a program that leaves its parents, clears its environment and then kills its session, or takes the session's file descriptors (prlimit(2)), lives on until the worker ends",
		Remedy:   "`workshop restart WORKER`; until then it can do what the worker's tools can",
		Promises: []string{"B60"}, Tests: []string{"internal/toolbox TestSessionsEnd", "internal/toolbox TestForkBomb", "internal/toolbox TestCancel", "internal/lib/reaper TestInProcesses"},
	},
	{
		ID: "W4", Attack: "The worker itself: PID 1 or a session that gets a signal, no process, memory or space left",
		Status: Open, Answer: "The call fails and says why, and the next one works as soon as there is room. An environment of many gigabytes isn't read. But all programs of a worker have one uid, so each can end any other: `kill 1` ends the worker, and its other clients' calls (other signals that mean nothing to it don't)",
		Remedy:   "`workshop up` starts it again; workers of their own for those that must not disturb each other",
		Promises: []string{"B5", "B60"}, Tests: []string{"internal/lib/reaper TestInProcesses", "internal/toolbox TestFull", "e2e TestB60_CommandsOfTools"},
	},
	{
		ID: "W5", Attack: "Trees that keep a tool busy: FIFOs, links in circles, a .gitignore of a megabyte, large expressions, `/proc`",
		Status: Closed, Answer: "Only regular files are opened, none on procfs and none that a magic link (`/dev/fd/3`) leads to, and walks follow no link. Rules, expressions, lines and results are bounded, and a call's time ends it between two names (a large expression may finish its line first)",
		Promises: []string{"B60"}, Tests: []string{"internal/toolbox/files TestNoFile", "internal/toolbox/files TestSearchEnds", "internal/toolbox/files TestListDeep", "internal/toolbox/files TestPatternsDontOutliveTheCall", "internal/toolbox/files TestRulesAreBoundedTogether", "internal/toolbox/files TestLargeExpressionsAreRefused"},
	},
	{
		ID: "W6", Attack: "Memory, time or a hang of the host, by a toolbox or an MCP server that is not what it was: endless messages, deep JSON, answers that nobody asked for, tools and warnings without number, a copy (`cp`) of a file of 900 GB",
		Status: Closed, Answer: "Every frame, message, stream, list, text and warning has a bound (a result of 4 MB made of tiny parts costs some 150 MB while it is read), and each wait an end where the worker has a timeout; whoever exceeds one loses the connection. What a server sends unasked is read at 500 messages or 4 MiB a second. `cp` refuses more than 10 GiB, 100,000 entries or 128 levels without `--unlimited`, and keeps holes. MCP servers can ask the host for nothing",
		Promises: []string{"B60"}, Tests: []string{"internal/toolbox/wire TestBadServer", "internal/toolbox/wire TestStuckServer", "internal/session/mcpclient TestServersThatMisbehave", "internal/session/mcpclient TestListsThatMisbehave", "internal/session/mcpclient TestPace", "internal/lib/safetar TestExtractLimits", "internal/session TestWarningsAreBounded", "e2e TestB60_WireClient", "e2e TestB60_MCPClient"},
	},
	{
		ID: "W7", Attack: "A terminal that does what a worker, an image or a server prints",
		Status: Closed, Answer: "Control characters come as text, in results that go to a terminal, questions, errors and warnings",
		Promises: []string{"B43"}, Tests: []string{"internal/cli/command TestErrorsArePrintable", "e2e TestB43_NothingCommandsTheTerminal"},
	},
	{
		ID: "W8", Attack: "Secrets of an MCP server inside, read by the worker's other programs (`/proc/PID/environ`, `/run/secrets`)",
		Status: Open, Answer: "A worker's programs have one uid: what one of them knows, the others can read. A secret is for a worker, not for a program in it",
		Remedy:   "Give the server a worker of its own, and delegate to it",
		Promises: []string{"B44"},
	},
}
