package threat

// toolItems: the tools of a worker, against what runs beside them with the same
// uid, and against what their answers may do on the host.
var toolItems = []Item{
	{
		ID: "W1", Attack: "Forged tool results: by a session's descriptors or memory, a listener in its place, an earlier connection",
		Status: Closed, Answer: "Nothing in a worker listens, and the dial-in directory is read-only. Each side checks the peer's credentials. PID 1 and sessions can't be traced or inspected ([why](decisions/door.md))",
		Promises: []string{"B41"}, Tests: []string{"internal/toolbox TestNotDumpable", "internal/toolbox TestDoorRefusesOthers", "internal/toolbox TestDoorIsReadOnly", "internal/toolbox TestDoorWantsOutside", "e2e TestB41_NobodyInTheWorkerForgesASession", "e2e TestB41_InitIsNeverDumpable"},
	},
	{
		ID: "W2", Attack: "An unlisted tool, or one beyond its limit: `Bash(git:*)` with variables, several commands, `git -c alias.x='!sh'`",
		Status: Open, Answer: "Host and worker check the grant; a limited line must be one plain command without variables. But an allowed program, or one in a writable directory of `PATH`, can run others",
		Remedy:   "Allow programs that run no others; no mount in `PATH`; a worker of its own for what must stay apart",
		Promises: []string{"B41"}, Tests: []string{"internal/toolbox TestOptIn", "e2e TestB41_OnlyWhatTheFileLists"},
	},
	{
		ID: "W3", Attack: "Processes that outlive their session: daemons, fork bombs, subreapers, ignored signals",
		Status: Open, Answer: "All end with it, except a program that leaves its parents, clears its environment, and kills its session: it lives until the worker ends",
		Remedy:   "`workshop restart WORKER`; until then it can do what the worker's tools can",
		Promises: []string{"B60"}, Tests: []string{"internal/toolbox TestSessionsEnd", "internal/toolbox TestForkBomb", "internal/toolbox TestCancel", "internal/lib/reaper TestInProcesses"},
	},
	{
		ID: "W4", Attack: "A signal to PID 1 or a session; no process, memory or space left",
		Status: Open, Answer: "The call fails and says why; the next works once there is room. But a worker's programs share a uid: `kill 1` ends the worker and its other clients' calls",
		Remedy:   "`workshop up` starts it again; a worker of its own for each that must not be disturbed",
		Promises: []string{"B5", "B60"}, Tests: []string{"internal/lib/reaper TestInProcesses", "internal/toolbox TestFull", "e2e TestB60_CommandsOfTools"},
	},
	{
		ID: "W5", Attack: "Trees that keep a tool busy: FIFOs, circular links, huge .gitignore files or expressions, `/proc`",
		Status: Closed, Answer: "Only regular files are opened, none on procfs or through a magic link; walks follow no link. Reading is bounded, and a timeout ends a call",
		Promises: []string{"B60"}, Tests: []string{"internal/toolbox/files TestNoFile", "internal/toolbox/files TestSearchEnds", "internal/toolbox/files TestListDeep", "internal/toolbox/files TestPatternsDontOutliveTheCall", "internal/toolbox/files TestRulesAreBoundedTogether", "internal/toolbox/files TestLargeExpressionsAreRefused"},
	},
	{
		ID: "W6", Attack: "Memory, time or a hang of the host by a hostile toolbox or MCP server: endless messages, deep JSON, a `cp` of 900 GB",
		Status: Closed, Answer: "Everything received is bounded; every wait ends if the worker has a timeout; `cp` [refuses large copies](cli.md#what-may-surprise). MCP servers can ask the host for nothing",
		Promises: []string{"B60"}, Tests: []string{"internal/toolbox/wire TestBadServer", "internal/toolbox/wire TestStuckServer", "internal/session/mcpclient TestServersThatMisbehave", "internal/session/mcpclient TestListsThatMisbehave", "internal/session/mcpclient TestPace", "internal/lib/safetar TestExtractLimits", "internal/session TestWarningsAreBounded", "e2e TestB60_WireClient", "e2e TestB60_MCPClient"},
	},
	{
		ID: "W7", Attack: "Terminal control sequences in what a worker, image or server prints",
		Status: Closed, Answer: "Escaped in questions, errors, warnings, and results on a terminal",
		Promises: []string{"B43"}, Tests: []string{"internal/cli/command TestErrorsArePrintable", "e2e TestB43_NothingCommandsTheTerminal"},
	},
	{
		ID: "W8", Attack: "An MCP server's secrets, read by other programs of the worker (`/proc/PID/environ`, `/run/secrets`)",
		Status: Open, Answer: "A worker's programs share a uid: what one knows, the others can read",
		Remedy:   "Give the server a worker of its own, and delegate to it",
		Promises: []string{"B44"},
	},
	{
		ID: "W9", Attack: "Refusals, as told to a model, worded by the worker",
		Status: Closed, Answer: "A note names only what the guard refused to that room during the call, and mounts of the file: at most five valid names and three ordinary paths, separate from the output",
		Promises: []string{"B28"}, Tests: []string{"internal/app TestToldRefused", "internal/app TestReadOnlyPlaces", "internal/app TestSigns", "internal/guard TestDeniedIsComplete", "e2e TestModelIsTold", "e2e TestNoteIsComplete"},
	},
	{
		ID: "W10", Attack: "Reading or changing something by the check, before a question, whether a call can succeed",
		Status: Closed, Answer: "It is made only where the worker may use `read_file` there without a question. It opens nothing for writing, starts nothing, and skips what a rule denies",
		Promises: []string{"B41", "B42"}, Tests: []string{"internal/session TestMayLook", "internal/session TestImpossibleIsNotAsked", "internal/session TestImpossibleProgramIsNotAsked", "internal/toolbox TestShellRefuses", "internal/toolbox/files TestWrite", "internal/toolbox/files TestEdit"},
	},
	{
		ID: "W11", Attack: "Keeping PID 1 or a session from running, so that a lost mount or timeout ends nothing: priority, scheduling, limits, a flood of signals",
		Status: Closed, Answer: "seccomp lets a process set only its own. PID 1 and sessions ignore signals that they don't use. They still share the worker's `cpu` with its programs",
		Promises: []string{"B2", "B3", "B60"}, Tests: []string{"e2e TestB02_OthersKeepTheirPriority", "e2e TestB03_LostMountEndsAFloodingWorker", "internal/toolbox TestFloodOfSignals", "internal/workerinit TestSignals", "compose TestOthersKeepTheirPriority"},
	},
}
