package threat

// fileItems: what a repository's files ask of the host, before a worker runs.
var fileItems = []Item{
	{
		ID: "F1", Attack: "A mount, copy, secret, build or image from a path with credentials or settings: `~/.netrc`, `/etc`",
		Status: Open, Answer: "[One list](mounts.md#paths-of-the-host-b7) is refused under every key: by text, symbolic links, and file identity. But other files of a home need only `outside_project: true`",
		Remedy:   "Read `workshop config` before a first `up`",
		Promises: []string{"B7", "B43"}, Tests: []string{"internal/hostpath TestEveryEntry", "workshop TestNoKeyOpensRefusedPaths", "internal/facts TestRefusedUnderOtherNames", "internal/facts TestRefusedByWhatIsMounted", "internal/facts TestSourcesThatAreNotUTF8", "internal/engine/docker TestTranslateRefusals", "internal/engine/namespace TestTranslateRefusals", "e2e TestB07_RefusedSources"},
	},
	{
		ID: "F2", Attack: "The repository's `.env` copies a variable of the caller: `X=${GITHUB_TOKEN}`",
		Status: Closed, Answer: "`.env` [reads no environment](mounts.md#your-environment-b45)",
		Promises: []string{"B45"}, Tests: []string{"workshop TestTheProjectsEnvFileReadsNoEnvironment", "workshop TestOriginOfVariables"},
	},
	{
		ID: "F3", Attack: "Project files as links to `~/.git-credentials` or `/proc/self/environ`, so that a message quotes them",
		Status: Closed, Answer: "Project files are opened only below the project directory, links included. What `-f` reads elsewhere and lines of environment files are never quoted",
		Promises: []string{"B45"}, Tests: []string{"workshop TestFilesOutsideAreNotShown"},
	},
	{
		ID: "F4", Attack: "`network.proxy` or `network.dns` at a service of the machine: 127.0.0.1, a metadata address, a name that resolves there",
		Status: Closed, Answer: "[Refused](mounts.md#the-guards-own-connections-b26-b31) at load, by the guard, and before connect",
		Promises: []string{"B26", "B31"}, Tests: []string{"workshop TestUpstreamsOfTheRepository", "compose TestUserUpstreams", "internal/guard/egress TestUpstreamsOfAFile", "internal/guard TestB31_UpstreamOfTheRepository"},
	},
	{
		ID: "F5", Attack: "The directory of secrets, made first by another user",
		Status: Closed, Answer: "Anything but a directory that only the caller owns and may write is skipped and named",
		Promises: []string{"B11"}, Tests: []string{"internal/facts TestRuntimeDirectoryIsPassedOver", "internal/facts TestRuntimeDirectoryOfAnother"},
	},
	{
		ID: "F6", Attack: "Project files that aren't: a FIFO, device, directory or 30 GB of holes",
		Status: Closed, Answer: "Only regular files are read, without blocking, up to [a limit](mounts.md#sizes-b60). A first SIGINT or SIGTERM ends a load, a second any command",
		Promises: []string{"B60"}, Tests: []string{"internal/lib/boundedfile TestRead", "internal/cli TestHostileFiles", "internal/cli TestSecondSignal", "internal/engine/docker TestHostileContext", "workshop TestInterrupted", "internal/dev/archtest TestFilesAreBounded"},
	},
	{
		ID: "F7", Attack: "Amplification: nested variables, defaults and schemas, alternatives in patterns, aliases, 100,000 keys",
		Status: Closed, Answer: "Everything that multiplies has [a limit](mounts.md#sizes-b60), counted after expansion",
		Promises: []string{"B60"}, Tests: []string{"workshop TestWorkIsBounded", "workshop FuzzEnvFile", "workshop FuzzLoad", "internal/engine/docker TestIgnoringEnds", "workshop TestWordsAreCounted", "workshop TestWorkerFilesAreBounded", "workshop/worker TestDepthOfSchemas", "workshop/worker TestWorkOfSchemas", "workshop TestErrorsAreNotHiddenByWarnings", "internal/lib/pathglob TestCheck", "internal/lib/pathglob FuzzCheck", "internal/app TestManyKeys", "internal/app TestResultThatTakesLong", "internal/app TestResultThatTakesMemory"},
	},
	{
		ID: "F8", Attack: "Hiding what is up from `ps` and `down`, by a worker that may write the project's directory: another project name, a nearer, missing or unreadable workshop.yaml",
		Status: Closed, Answer: "What is up is [recorded](mounts.md#what-is-compared-b8) by name in your state directory. Until `down`, commands refuse another name, or a file that a worker may have written; without a file they print the `-p` that works",
		Promises: []string{"B8", "B11", "B60"}, Tests: []string{"internal/app TestRenamedWhileUp", "internal/app TestPlantedBelow", "internal/app TestBaselineIsFound", "internal/app TestDownByName", "e2e TestB08_BaselineStays"},
	},
	{
		ID: "F9", Attack: "Another user's workshop.yaml in a parent directory, such as /tmp",
		Status: Closed, Answer: "A file above the working directory must belong to the caller, root, or the working directory's owner",
		Promises: []string{"B43", "B45"}, Tests: []string{"internal/app TestForeignParentFile"},
	},
	{
		ID: "F10", Attack: "A tool or key disguised as a comment, by control, bidirectional or invisible characters: `# only reads<U+2028>allowed-tools: Bash`",
		Status: Closed, Answer: "In YAML, comments included, such characters are errors unless escaped in double quotes; in a worker's instructions, a warning",
		Promises: []string{"B41"}, Tests: []string{"internal/lib/yamltext TestCheck", "workshop TestYAMLIsWhatIsShown", "workshop/worker TestKeysAreWhatIsShown"},
	},
	{
		ID: "F11", Attack: "The name of another Compose project: `up` and `down` would remove its containers, networks and volumes",
		Status: Closed, Answer: "Ours has our label with the project's directory, and a container Compose's working directory too. `up` refuses others; `down` names and leaves them",
		Remedy:   "`-p` gives another name. Unlabelled networks and volumes of an older version are ours while only our containers use them; without containers, `docker volume rm NAME_sockets`",
		Promises: []string{"B60"}, Tests: []string{"internal/engine TestOurContainer", "internal/engine TestSift", "internal/engine TestPlansLeaveOthersAlone", "internal/engine/docker TestOthersOfTheName", "internal/engine/docker TestOthersBesideOurs", "e2e TestB60_OthersOfTheName", "e2e TestPlainCompose_Down"},
	},
	{
		ID: "F12", Attack: "An image's labels that hide a worker: `dev.llmdo.workshop.helper`, our configuration hash",
		Status: Closed, Answer: "Only labels that a container's creator always sets count",
		Promises: []string{"B60"}, Tests: []string{"internal/engine TestLabelsOfAnImage", "internal/engine/docker TestImageSaysHelper"},
	},
	{
		ID: "F13", Attack: "A mount target through a link (`./evil:/workspace/link/workshop-init`), so that the repository's program is PID 1; an image's volumes inside a mount, created on the host as root; a pinned directory that a worker swaps for a link while a worker starts",
		Status: Open, Answer: "A mount point inside a mount must exist, be no link, and is pinned in every worker that may write there. An image's links lead no mount into another one or into what the engine fills; its volumes are in no mount. Docker's mounts are checked again before each start, with the workshop's writers paused; the namespace engine follows no link in a mount",
		Remedy:   "Docker follows links between check and start: only this workshop's workers may write to those directories. `docker compose up` checks neither: use `workshop up`",
		Promises: []string{"B7", "B12"}, Tests: []string{"internal/facts TestTargetsThroughLinks", "compose TestMountPointsInWritableMountsArePinned", "internal/engine/docker TestWaysAreLookedAtBeforeAStart", "internal/engine/docker TestWritersAreHeld", "internal/engine/docker TestLinksOfTheImage", "internal/engine/docker TestLinksOfARealImage", "internal/engine/docker TestVolumesOfTheImageInsideOfMounts", "internal/engine/namespace/container TestLinks"},
	},
	{
		ID: "F14", Attack: "Shown differs from done: variables with another value in `.env`; `./data`, a link to ~/Documents; a mapped host in other letter case",
		Status: Closed, Answer: "`up` shows values of variables, proxy, resolvers, where a source's links lead, and a mapped host with its target: for a worker as a whole until an `up` has said that, then what changed; `up -v` always",
		Promises: []string{"B7", "B24", "B26", "B45"}, Tests: []string{"internal/grant TestNetworkText", "internal/app TestGrantThatNoUpHasSaid", "internal/cli TestScripts", "workshop TestMappedHosts"},
	},
	{
		ID: "F15", Attack: "A small image archive that unpacks to gigabytes of holes and ignores Ctrl-C",
		Status: Closed, Answer: "Holes stay holes, an interrupt ends the copy, and unfinished files are removed",
		Promises: []string{"B60"}, Tests: []string{"internal/image TestHoles", "internal/image TestCanceled", "internal/image TestHalfIsNeverUsed"},
	},
	{
		ID: "F16", Attack: "A link `workers -> ~/.claude/agents`, through which `workshop init` writes",
		Status: Closed, Answer: "`init` writes only below its directory, and overwrites nothing",
		Promises: []string{"B43"}, Tests: []string{"internal/cli TestScripts"},
	},
	{
		ID: "F17", Attack: "A value that passes `validate` and fails at `up`: a port on `::ffff:0.0.0.0`, NUL in a variable",
		Status: Closed, Answer: "Mapped addresses count as what they map to, and NUL is refused",
		Promises: []string{"B10", "B60"}, Tests: []string{"workshop TestInvalid"},
	},
	{
		ID: "F18", Attack: "Text that controls its display: ESC and BEL in a terminal, `::commands::` in a GitHub Actions log, bidirectional marks",
		Status: Closed, Answer: "Problems, `config`, JSON and generated files escape them, also in values of variables",
		Promises: []string{"B41", "B43"}, Tests: []string{"internal/diagtext TestWriters", "internal/cli TestScripts", "internal/cli TestCheckIsPrintable", "internal/engine TestForeignDirectoriesArePrintable"},
	},
	{
		ID: "F19", Attack: "A compose.override.yaml in .workshop/NAME, or another file that Compose reads by itself",
		Status: Closed, Answer: "`compile` names it, `compile --check` fails, `workshop up` doesn't read it",
		Promises: []string{"B43"}, Tests: []string{"internal/app TestCheckOfStrangeFiles", "internal/cli TestScripts"},
	},
	{
		ID: "F20", Attack: "Undoing what a person accepted, or what `--save` wrote: a worker of a project above restores the older workshop.yaml, or removes the `.env`, of a project below",
		Status: Closed, Answer: "Of a file that the project's own record has, only that counts; what is accepted or written is noted in every record whose workers may write the file",
		Promises: []string{"B8"}, Tests: []string{"internal/facts TestOlderBaselineOfAnotherProject", "internal/facts TestRewriteOfAllRecords", "internal/app TestRollbackByAnotherProject"},
	},
	{
		ID: "F21", Attack: "More accepted than was shown: two texts with one digest, files planted after it was printed, any digest where nothing is to be accepted; `compile`, which asks nobody",
		Status: Closed, Answer: "A digest has 128 bits and takes the workshop's own files alone, exactly as shown; `compile` refuses what `up` refuses",
		Promises: []string{"B8"}, Tests: []string{"internal/app TestAcceptedIsShown", "internal/cli TestScripts"},
	},
	{
		ID: "F22", Attack: "The file of a secret where a worker writes, also by a link of the repository (`./data/k`, `data -> out/data`): the worker replaces it by a link, so that the next start hands it another file",
		Status: Closed, Answer: "A path that leads into an `rw` mount must stay in it, as one in the project must stay there; else the secret is refused",
		Promises: []string{"B7", "B45"}, Tests: []string{"internal/facts TestSecretReplaced", "internal/facts TestSecretReplacedOutside", "internal/facts TestSecretByALinkOfTheProject"},
	},
	{
		ID: "F23", Attack: "A poisoned cache: what one worker, or the same one when it was granted less, wrote into a package or build cache is run by a wider one, or what a tool left of a token is read by a narrower one",
		Status: Closed, Answer: "A cache belongs to one worker and is named by a digest of its grants; nothing of the host reads it",
		Promises: []string{"B3", "B40"}, Tests: []string{"compose TestCacheIsKeyedByGrants", "compose TestCacheVolumesDiffer", "compose TestCheckFindsEachViolation", "e2e TestB03_CacheBelongsToOneWorkerAndOneGrant"},
	},
	{
		ID: "F24", Attack: "A cache made to be measured and removed: millions of files, directories without end or closed, links to the host, sparse files",
		Status: Closed, Answer: "PID 1 measures blocks as the worker's user, within a time and a depth; removal goes by descriptors, follows no link, and moves up what is deeper than they go",
		Promises: []string{"B60"}, Tests: []string{"internal/lib/rmtree TestRemoveDeep", "internal/lib/rmtree TestRemoveAndSize", "internal/workerinit TestCacheIsTended", "e2e TestB60_HostileCache"},
	},
	{
		ID: "F25", Attack: "The file of an MCP client that `mcp install` edits: one that a worker wrote since `up`, a link, a FIFO, megabytes of brackets, a server whose text looks like another's, a change while it is edited",
		Status: Closed, Answer: "A file that a worker may have written is refused until it is accepted; links and other kinds of files are. What is written is parsed before and after: nothing but the server may differ, and no byte of the rest",
		Promises: []string{"B8", "B60"}, Tests: []string{"internal/app TestWriteClientAfterWorker", "internal/app TestWriteClientRefused", "internal/facts TestRewriteNew", "internal/mcpconfig TestNotEdited", "internal/mcpconfig TestLarge", "internal/mcpconfig FuzzEdit", "internal/cli TestHostileFiles"},
	},
	{
		ID: "F26", Attack: "Lines of `init --from` that people paste: a command of a devcontainer.json with `;`, `$(…)`, a line end, an escape or spaces that push its end out of sight, a file name like an option",
		Status: Closed, Answer: "Words are quoted, and what isn't shown as a whole is in no line; none runs a repository's command on the host",
		Promises: []string{"B43"}, Tests: []string{"internal/importer TestHintsArePasteable", "internal/importer TestGolden"},
	},
	{
		ID: "F27", Attack: "A report of `doctor --bundle`: a repository plants a part of a token or of a value, so that only that part is taken out; a value that has a token or a URL in it, or is cut where the log is",
		Status: Closed, Answer: "Tokens and URLs are taken out before values, the longest value first, and a log begins with a whole line",
		Promises: []string{"B11"}, Tests: []string{"internal/doctor TestRedactorOfOverlaps", "internal/app TestBundleOfALongLog", "internal/app TestBundleOfPlantedBeginnings", "internal/app TestBundleIsRedacted"},
	},
	{
		ID: "F28", Attack: "A tag that is moved to another image after it was reviewed, or an image of that tag that a build or another user put on the engine; a layout, an archive or a build context that changes after it was compared with the lock, or after a person was asked about it",
		Status: Closed, Answer: "With a [lock](sharing.md#the-lock) an image runs by its digest; the engine's own image of the tag is refused, and stays. Files are used only where the bytes that are read have the hash that was compared",
		Promises: []string{"B46"}, Tests: []string{"internal/lock TestPin", "internal/engine TestLockedImage", "internal/image TestContentIsTheHashedOne", "internal/image TestArchiveChangesAfterItsHash", "internal/engine/docker TestApprovedIsWhatWasPlanned", "internal/app TestBuildIsWhatIsLocked", "e2e TestB46_WhatRunsIsLocked", "e2e TestB46_ArchivesAreReadOnce"},
	},
	{
		ID: "F29", Attack: "A lock with another hash or grant, cut off, with conflict markers, keys given twice, aliases or hidden text; a lock that a worker rewrites; WORKSHOP_FROZEN=false in the environment",
		Status: Closed, Answer: "It is an error with a line, never an empty lock. It is one of the workshop's own files, which `up` reads once and asks about where a worker may have written them (B8). Only a flag turns --frozen off",
		Promises: []string{"B8", "B46", "B60"}, Tests: []string{"internal/lock TestBad", "internal/lock TestCompare", "internal/lock FuzzParse", "internal/app TestLockIsReviewed", "internal/cli TestScripts"},
	},
	{
		ID: "F30", Attack: "A pull request that gives workers more and doesn't look like it: a deny taken away, a mount that covered another one removed, a longer line without `private` left out, a rule of approvals moved, a default of a variable changed, the gate or its owners removed, names that drive a terminal or a page",
		Status: Closed, Answer: "[`workshop diff`](sharing.md#what-a-change-grants) compares what is effective; what it can't decide is unknown, and fails a gate as a widening does. Its text is escaped",
		Promises: []string{"B40"}, Tests: []string{"internal/diff TestNothingIsWidenedWithoutARow", "internal/diff TestWidened", "internal/diff TestVariablesAreNotGuessed", "internal/diff FuzzCompare", "internal/cli TestScripts"},
	},
	{
		ID: "F31", Attack: "A file of another repository that asks for more: hosts, mounts, secrets of the machine, `${HOME}`, an image, approvals without a question, an MCP server, a worker with the name of one of the project's; needs that grow with an update",
		Status: Closed, Answer: "An imported file has a list of keys and no variables; its workers get what they need of what `grant` says, and what isn't granted is an error with both places. A base only narrows, but for what it opens",
		Promises: []string{"B40", "B47"}, Tests: []string{"workshop TestImports", "workshop TestImportsWithoutGrant", "workshop TestSourcesRefused", "workshop TestOpen", "workshop TestKeyRules"},
	},
	{
		ID: "F32", Attack: "A source that hangs, redirects, is huge, moves a tag, sends another tree for a commit, a branch named like a commit, links, submodules, names that collide; its hooks, filters and attributes; a cache or vendor directory that a worker wrote",
		Status: Closed, Answer: "git reads it without a checkout, with limits, in an empty repository; a tree counts by its hash alone, and is in memory once. Nothing is contacted before somebody agreed",
		Promises: []string{"B43", "B46", "B47", "B60"}, Tests: []string{"internal/git TestFetchRefused", "internal/git TestHostileServer", "internal/git TestRedirects", "internal/git TestFetchRunsNothing", "internal/git TestNamedLikeACommit", "internal/source TestStore", "internal/source TestKept"},
	},
}
