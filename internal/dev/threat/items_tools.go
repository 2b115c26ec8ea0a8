package threat

// toolItems: the tools of a worker, against what runs beside them with the same
// uid, and against what their answers may do on the host.
var toolItems = []Item{
	{
		ID: "W1", Attack: "Forged tool results: the session's descriptors or memory, a listener in its place, an earlier connection",
		Status: Closed, Answer: "Nothing in a worker listens, and the dial-in directory is read-only. Each side checks the peer's credentials; a session belongs to PID 1 alone. PID 1 and sessions can't be traced or inspected, from their first instruction ([why](decisions/door.md))",
		Promises: []string{"B41"}, Tests: []string{"internal/toolbox TestNotDumpable", "internal/toolbox TestDoorRefusesOthers", "internal/toolbox TestDoorIsReadOnly", "internal/toolbox TestDoorWantsOutside", "e2e TestB41_NobodyInTheWorkerForgesASession", "e2e TestB41_InitIsNeverDumpable"},
	},
	{
		ID: "W2", Attack: "An unlisted tool, or one beyond its limit: `Bash(git:*)` with other variables, several commands, `git -c alias.x='!sh'`",
		Status: Open, Answer: "Host and toolbox both check the grant in PID 1's arguments. A limited line must be one plain command without variables. But an allowed program, or one in a writable directory of `PATH`, can run others: a limit keeps a model at its task, the container limits its reach",
		Remedy:   "Allow programs that run no others; no mount in `PATH`; a worker of its own for what must stay apart",
		Promises: []string{"B41"}, Tests: []string{"internal/toolbox TestOptIn", "e2e TestB41_OnlyWhatTheFileLists"},
	},
	{
		ID: "W3", Attack: "Processes that outlive their call or session: daemons, fork bombs, subreapers, ignored signals",
		Status: Open, Answer: "All stay below the session and end with it, even if it is killed. Except a program that leaves its parents, clears its environment, and kills its session or takes its file descriptors (prlimit(2)): it lives until the worker ends",
		Remedy:   "`workshop restart WORKER`; until then it can do what the worker's tools can",
		Promises: []string{"B60"}, Tests: []string{"internal/toolbox TestSessionsEnd", "internal/toolbox TestForkBomb", "internal/toolbox TestCancel", "internal/lib/reaper TestInProcesses"},
	},
	{
		ID: "W4", Attack: "The worker itself: a signal to PID 1 or a session; no process, memory or space left",
		Status: Open, Answer: "The call fails and says why; the next works once there is room. An environment of many gigabytes isn't read. But a worker's programs share a uid: `kill 1` ends the worker and its other clients' calls (signals that mean nothing to it don't)",
		Remedy:   "`workshop up` starts it again; a worker of its own for each that must not be disturbed",
		Promises: []string{"B5", "B60"}, Tests: []string{"internal/lib/reaper TestInProcesses", "internal/toolbox TestFull", "e2e TestB60_CommandsOfTools"},
	},
	{
		ID: "W5", Attack: "Trees that keep a tool busy: FIFOs, circular links, a .gitignore of a megabyte, large expressions, `/proc`",
		Status: Closed, Answer: "Only regular files are opened, none on procfs or through a magic link (`/dev/fd/3`). Walks follow no link. Everything read is bounded, and a timeout ends a call between two names (a large expression may finish its line)",
		Promises: []string{"B60"}, Tests: []string{"internal/toolbox/files TestNoFile", "internal/toolbox/files TestSearchEnds", "internal/toolbox/files TestListDeep", "internal/toolbox/files TestPatternsDontOutliveTheCall", "internal/toolbox/files TestRulesAreBoundedTogether", "internal/toolbox/files TestLargeExpressionsAreRefused"},
	},
	{
		ID: "W6", Attack: "Memory, time or a hang of the host through a hostile toolbox or MCP server: endless messages, deep JSON, unsolicited answers, countless tools and warnings, a `cp` of 900 GB",
		Status: Closed, Answer: "Every frame, message, stream, list, text and warning is bounded (a 4 MB result of tiny parts costs about 150 MB to read). Every wait ends if the worker has a timeout. Exceeding a bound closes the connection. Unsolicited messages are read at 500 or 4 MiB a second. `cp` refuses over 10 GiB, 100,000 entries or 128 levels without `--unlimited`, and keeps holes. MCP servers can ask the host for nothing",
		Promises: []string{"B60"}, Tests: []string{"internal/toolbox/wire TestBadServer", "internal/toolbox/wire TestStuckServer", "internal/session/mcpclient TestServersThatMisbehave", "internal/session/mcpclient TestListsThatMisbehave", "internal/session/mcpclient TestPace", "internal/lib/safetar TestExtractLimits", "internal/session TestWarningsAreBounded", "e2e TestB60_WireClient", "e2e TestB60_MCPClient"},
	},
	{
		ID: "W7", Attack: "Terminal control sequences in what a worker, image or server prints",
		Status: Closed, Answer: "Control characters are escaped in questions, errors, warnings, and results that go to a terminal",
		Promises: []string{"B43"}, Tests: []string{"internal/cli/command TestErrorsArePrintable", "e2e TestB43_NothingCommandsTheTerminal"},
	},
	{
		ID: "W8", Attack: "An MCP server's secrets, read by the worker's other programs (`/proc/PID/environ`, `/run/secrets`)",
		Status: Open, Answer: "A worker's programs share a uid: what one knows, the others can read",
		Remedy:   "Give the server a worker of its own, and delegate to it",
		Promises: []string{"B44"},
	},
	{
		ID: "W9", Attack: "A note of ours that a worker writes: names and paths that it asks for, which stand in what a model is told of refusals",
		Status: Closed, Answer: "A note names what the guard refused to that worker's room while the call ran, and mounts of the file: never a text of the output. What is not a valid name, or not made of the characters of ordinary paths, is left out; five names and three paths stand in it at most",
		Promises: []string{"B28"}, Tests: []string{"internal/app TestToldRefused", "internal/app TestReadOnlyPlaces", "internal/app TestSigns", "e2e TestModelIsTold"},
	},
	{
		ID: "W10", Attack: "The look whether a call can succeed, which comes before the question: to read by it what needs a yes, or to change something",
		Status: Closed, Answer: "It is made only where the worker may read the file without a question, and where it is offered `read_file`. It opens nothing for writing and makes nothing; what a rule denies isn't looked at",
		Promises: []string{"B41", "B42"}, Tests: []string{"internal/session TestImpossibleIsNotAsked", "internal/toolbox/files TestWrite", "internal/toolbox/files TestEdit"},
	},
}
