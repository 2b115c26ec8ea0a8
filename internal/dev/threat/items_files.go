package threat

// fileItems: what a repository's files ask of the host, before a worker runs.
var fileItems = []Item{
	{
		ID: "F1", Attack: "A mount, copy, secret, build or image from a path with credentials or settings: `~/.config/workshop` with `mode: rw`, `~/.netrc`, `/etc`",
		Status: Open, Answer: "[One list](mounts.md#paths-of-the-host-b7) is refused under every key: by text, by symbolic links, and by file identity for bind mounts and hard links. So are paths that aren't UTF-8. Other files of a home need `outside_project: true`",
		Remedy:   "Read `workshop config` before a first `up`",
		Promises: []string{"B7", "B43"}, Tests: []string{"internal/hostpath TestEveryEntry", "workshop TestNoKeyOpensRefusedPaths", "internal/facts TestRefusedUnderOtherNames", "internal/facts TestRefusedByWhatIsMounted", "internal/facts TestSourcesThatAreNotUTF8", "internal/engine/docker TestTranslateRefusals", "internal/engine/namespace TestTranslateRefusals", "e2e TestB07_RefusedSources"},
	},
	{
		ID: "F2", Attack: "The repository's `.env` copies a variable of the caller: `X=${GITHUB_TOKEN}`, where workshop.yaml shows `${X:-dev}`",
		Status: Closed, Answer: "`.env` [reads no environment](mounts.md#your-environment-b45); `--env-file`, which the caller names, may",
		Promises: []string{"B45"}, Tests: []string{"workshop TestTheProjectsEnvFileReadsNoEnvironment", "workshop TestOriginOfVariables"},
	},
	{
		ID: "F3", Attack: "Project files as links: workshop.yaml, a worker's file, its schema or `.env` to `~/.git-credentials` or `/proc/self/environ`, so that a message quotes it",
		Status: Closed, Answer: "Project files are opened only below the project directory, links included. What `-f` reads elsewhere and lines of environment files are never quoted",
		Promises: []string{"B45"}, Tests: []string{"workshop TestFilesOutsideAreNotShown"},
	},
	{
		ID: "F4", Attack: "`network.proxy` or `network.dns` at a service of the machine: `http://127.0.0.1:18080`, `localhost`, a metadata address, a name that resolves there",
		Status: Closed, Answer: "[Refused](mounts.md#the-guards-own-connections-b26-b31) in the text, by the guard, and before connect, with the machine's own addresses. The user's environment, `--env-file` and the machine's resolv.conf may name it",
		Promises: []string{"B26", "B31"}, Tests: []string{"workshop TestUpstreamsOfTheRepository", "compose TestUserUpstreams", "internal/guard/egress TestUpstreamsOfAFile", "internal/guard TestB31_UpstreamOfTheRepository"},
	},
	{
		ID: "F5", Attack: "The directory of secrets, made first by another user: `/dev/shm/workshop-UID` as a directory, link or file",
		Status: Closed, Answer: "Anything but a directory that only the caller owns and may write is skipped and named, by a dry run too",
		Promises: []string{"B11"}, Tests: []string{"internal/facts TestRuntimeDirectoryIsPassedOver", "internal/facts TestRuntimeDirectoryOfAnother"},
	},
	{
		ID: "F6", Attack: "Project files that aren't: a FIFO, device, directory or 30 GB of holes, so that `ps`, `exec`, `logs` or `down` hang or fill memory",
		Status: Closed, Answer: "One helper reads them: regular files only, checked before opening, without blocking, bounded. workshop.yaml and a Dockerfile 1 MiB; worker files, schemas, `.env`, `.dockerignore` and generated.sha256 256 KiB; generated files 16 MiB. A first SIGINT or SIGTERM ends a load, a second any command",
		Promises: []string{"B60"}, Tests: []string{"internal/lib/boundedfile TestRead", "internal/cli TestHostileFiles", "internal/cli TestSecondSignal", "internal/engine/docker TestHostileContext", "workshop TestInterrupted", "internal/dev/archtest TestFilesAreBounded"},
	},
	{
		ID: "F7", Attack: "Amplification: nested variables in `.env`, alternatives in `exclude` and approval rules, aliases, 100,000 keys, nested defaults and schemas, 900 workers with 900 mounts each",
		Status: Closed, Answer: "Limits. Value: 64 KiB after substitution. `.env`: 1 MiB, and the work on its variables. Glob: 1,024 bytes, 256 alternatives. `exclude` of a mount: 1,024 patterns, alternatives counted. `.dockerignore`: 1,000 patterns, 30 s, interruptible. YAML: depth 64, 100,000 values, aliases counted. Schemas: depth 64; all together 1 MiB, 20,000 values, 100,000 pattern steps with repetitions written out. Worker files: 16 MiB together. All workers: 100,000 mounts, variables, rules, secrets and ports. `check-result`: 4 MiB, 10 s, 512 MiB. Shown problems of a file: 100, errors first",
		Promises: []string{"B60"}, Tests: []string{"workshop TestWorkIsBounded", "workshop FuzzEnvFile", "workshop FuzzLoad", "internal/engine/docker TestIgnoringEnds", "workshop TestWordsAreCounted", "workshop TestWorkerFilesAreBounded", "workshop/worker TestDepthOfSchemas", "workshop/worker TestWorkOfSchemas", "workshop TestErrorsAreNotHiddenByWarnings", "internal/lib/pathglob TestCheck", "internal/lib/pathglob FuzzCheck", "internal/app TestManyKeys", "internal/app TestResultThatTakesLong", "internal/app TestResultThatTakesMemory"},
	},
	{
		ID: "F8", Attack: "A worker that may write the project's directory hides what is up: another project name (a `.git` file that names a worktree, `name:`), a nearer, missing or unreadable workshop.yaml",
		Status: Closed, Answer: "What is up is [recorded](mounts.md#what-is-compared-b8) by name in the user's state directory. Commands refuse another name, or a file that a worker may have written, until `down`. Without a file they print the `-p` with which `ps` and `down` work",
		Promises: []string{"B8", "B11", "B60"}, Tests: []string{"internal/app TestRenamedWhileUp", "internal/app TestPlantedBelow", "internal/app TestBaselineIsFound", "internal/app TestDownByName", "e2e TestB08_BaselineStays"},
	},
	{
		ID: "F9", Attack: "Another user's workshop.yaml in a parent directory, such as /tmp",
		Status: Closed, Answer: "One found above the working directory must belong to the caller, root, or the working directory's owner. `-f` names any",
		Promises: []string{"B43", "B45"}, Tests: []string{"internal/app TestForeignParentFile"},
	},
	{
		ID: "F10", Attack: "A tool or key disguised as a comment: `# only reads<U+2028>allowed-tools: Bash`, bidirectional or invisible characters, in workshop.yaml, a worker's file or a schema",
		Status: Closed, Answer: "YAML may have no line separators but LF and CRLF, and no control, bidirectional or invisible characters, comments included, except escaped in double quotes. In a worker's instructions they are a warning",
		Promises: []string{"B41"}, Tests: []string{"internal/lib/yamltext TestCheck", "workshop TestYAMLIsWhatIsShown", "workshop/worker TestKeysAreWhatIsShown"},
	},
	{
		ID: "F11", Attack: "The name of another Compose project: `up` and `down` would remove its containers, networks and volumes",
		Status: Closed, Answer: "Ours has our label with the project's directory, and a container Compose's working directory too, since images can set labels. Others are never touched: `up` refuses; `down` removes ours, names the rest, and refuses if nothing is ours. Unlabelled networks and volumes of an older version are ours while only our containers use them",
		Remedy:   "`-p` gives another name. Unlabelled volumes without containers are refused: `docker volume rm NAME_sockets`",
		Promises: []string{"B60"}, Tests: []string{"internal/engine TestOurContainer", "internal/engine TestSift", "internal/engine TestPlansLeaveOthersAlone", "internal/engine/docker TestOthersOfTheName", "internal/engine/docker TestOthersBesideOurs", "e2e TestB60_OthersOfTheName", "e2e TestPlainCompose_Down"},
	},
	{
		ID: "F12", Attack: "An image's labels that hide a worker: `dev.llmdo.workshop.helper`, our configuration hash",
		Status: Closed, Answer: "Only labels that a container's creator always sets decide: a helper has no service, and the hash is Compose's too",
		Promises: []string{"B60"}, Tests: []string{"internal/engine TestLabelsOfAnImage", "internal/engine/docker TestImageSaysHelper"},
	},
	{
		ID: "F13", Attack: "A mount target through a link: `./evil:/workspace/link/workshop-init`, where `link`, of a mount or the image, leads to /opt/workshop, so that the repository's program is PID 1, with secrets and other `--tools`. Or an image's volumes inside a mount, created on the host as root. Or a worker swaps a pinned directory (one with a .git) for a link while a worker starts",
		Status: Open, Answer: "A mount point inside a mount must exist, be no link, and is pinned in every worker that may write there. Docker's mounts are checked again before each start, with the workshop's writers paused. An image's links lead no mount into another one or into what the engine fills; its volumes are in no mount. The namespace engine follows no link in a mount",
		Remedy:   "Docker follows links between check and start: only this workshop's workers may write to those directories. `docker compose up` checks neither: use `workshop up`",
		Promises: []string{"B7", "B12"}, Tests: []string{"internal/facts TestTargetsThroughLinks", "compose TestMountPointsInWritableMountsArePinned", "internal/engine/docker TestWaysAreLookedAtBeforeAStart", "internal/engine/docker TestWritersAreHeld", "internal/engine/docker TestLinksOfTheImage", "internal/engine/docker TestLinksOfARealImage", "internal/engine/docker TestVolumesOfTheImageInsideOfMounts", "internal/engine/namespace/container TestLinks"},
	},
	{
		ID: "F14", Attack: "Shown differs from done: `allow: [\"${H:-api.example.org}\"]` with another `H` in `.env`; `dns:` and `proxy:` from there; `./data`, a link to ~/Documents; a host in other letter case, mapped elsewhere",
		Status: Closed, Answer: "`up` shows values of variables, proxy, resolvers, and where a source's links lead (`config` too). A mapped host is shown with its target",
		Promises: []string{"B7", "B24", "B26", "B45"}, Tests: []string{"internal/cli/lifecycle TestLineSaysWhatIsOpen", "internal/cli TestScripts", "workshop TestMappedHosts"},
	},
	{
		ID: "F15", Attack: "A 20 KB image archive that unpacks to gigabytes of holes and ignores Ctrl-C",
		Status: Closed, Answer: "Holes stay holes, an interrupt ends the copy, and unfinished files are removed, at the latest by the next run",
		Promises: []string{"B60"}, Tests: []string{"internal/image TestHoles", "internal/image TestCanceled", "internal/image TestHalfIsNeverUsed"},
	},
	{
		ID: "F16", Attack: "A link `workers -> ~/.claude/agents`, through which `workshop init` writes",
		Status: Closed, Answer: "`init` opens its directory once, writes only below it, and overwrites nothing",
		Promises: []string{"B43"}, Tests: []string{"internal/cli TestScripts"},
	},
	{
		ID: "F17", Attack: "A value that passes `validate` and fails at `up` as an internal fault: a port on `::ffff:0.0.0.0`, NUL in a variable",
		Status: Closed, Answer: "Mapped addresses are compared as what they map to, and NUL is refused, both with their position",
		Promises: []string{"B10", "B60"}, Tests: []string{"workshop TestInvalid"},
	},
	{
		ID: "F18", Attack: "Repository text that controls its display: ESC and BEL in a terminal, `::commands::` in a GitHub Actions log, bidirectional marks, in values of variables too",
		Status: Closed, Answer: "Every format of problems escapes them. `config`, JSON and generated files use the escapes of their language",
		Promises: []string{"B41", "B43"}, Tests: []string{"internal/diagtext TestWriters", "internal/cli TestScripts", "internal/cli TestCheckIsPrintable"},
	},
	{
		ID: "F19", Attack: "A compose.override.yaml in .workshop/NAME, or another file that Compose reads by itself",
		Status: Closed, Answer: "`compile` names it, `compile --check` fails, `workshop up` doesn't read it",
		Promises: []string{"B43"}, Tests: []string{"internal/app TestCheckOfStrangeFiles", "internal/cli TestScripts"},
	},
}
