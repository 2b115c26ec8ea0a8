package threat

// fileItems: what a repository's files ask of the host, before a worker runs.
var fileItems = []Item{
	{
		ID: "F1", Attack: "A mount, copy, secret, build or image from a path that holds credentials or what the host's programs obey: `~/.config/workshop` with `mode: rw`, `~/.netrc`, `/etc`",
		Status: Open, Answer: "One list is refused under every key and name: by text, by what symbolic links on the way lead to, and by the file's identity where a bind mount or a hard link gives another name. A path that isn't UTF-8, which an engine's JSON would turn into that of another directory, is refused, and told to no engine. Other files of a home directory may be mounted where the file says `outside_project: true`",
		Remedy:   "Read `workshop config` before a first `up`; docs/mounts.md has the list",
		Promises: []string{"B7", "B43"}, Tests: []string{"internal/hostpath TestEveryEntry", "workshop TestNoKeyOpensRefusedPaths", "internal/facts TestRefusedUnderOtherNames", "internal/facts TestRefusedByWhatIsMounted", "internal/facts TestSourcesThatAreNotUTF8", "internal/engine/docker TestTranslateRefusals", "internal/engine/namespace TestTranslateRefusals", "e2e TestB07_RefusedSources"},
	},
	{
		ID: "F2", Attack: "The `.env` of the repository copies a variable of the caller's: `X=${GITHUB_TOKEN}`, where workshop.yaml shows `${X:-dev}`",
		Status: Closed, Answer: "That file reads no environment; a value that asks for some is an error where it is used. `--env-file`, which the caller names, may",
		Promises: []string{"B45"}, Tests: []string{"workshop TestTheProjectsEnvFileReadsNoEnvironment", "workshop TestOriginOfVariables"},
	},
	{
		ID: "F3", Attack: "workshop.yaml, a worker's file, its schema or `.env` as a symbolic link to `~/.git-credentials` or `/proc/self/environ`, so that a message quotes it",
		Status: Closed, Answer: "Files of a project are opened below its directory alone, links included. `-f` reads a workshop.yaml that leads elsewhere, and nothing of it is quoted; neither is any line of a file of variables",
		Promises: []string{"B45"}, Tests: []string{"workshop TestFilesOutsideAreNotShown"},
	},
	{
		ID: "F4", Attack: "`network.proxy` or `network.dns` at a service of the machine: `http://127.0.0.1:18080`, `localhost`, a metadata address, a name that resolves there",
		Status: Closed, Answer: "What no rule opens, no proxy or resolver of a repository is: refused by its text, when it is named to the guard, and immediately before connect, where the machine's own addresses count too. The user's environment, `--env-file` and the machine's resolv.conf may name them",
		Promises: []string{"B26", "B31"}, Tests: []string{"workshop TestUpstreamsOfTheRepository", "compose TestUserUpstreams", "internal/guard/egress TestUpstreamsOfAFile", "internal/guard TestB31_UpstreamOfTheRepository"},
	},
	{
		ID: "F5", Attack: "Another user of the machine makes the directory of secrets first, by its known name: `/dev/shm/workshop-UID`, as a directory, a link or a file",
		Status: Closed, Answer: "What isn't a directory of the caller's that only the caller may write is passed over, by a dry run too, and named",
		Promises: []string{"B11"}, Tests: []string{"internal/facts TestRuntimeDirectoryIsPassedOver", "internal/facts TestRuntimeDirectoryOfAnother"},
	},
	{
		ID: "F6", Attack: "In the place of a file of the project, a named pipe, a device, a directory or 30 GB of holes, so that `ps`, `exec`, `logs` or `down` hang or fill the memory",
		Status: Closed, Answer: "One helper reads the files: regular ones alone, looked at before they are opened, without waiting, up to a limit (workshop.yaml and a Dockerfile 1 MiB; worker files, schemas, `.env`, `.dockerignore` and generated.sha256 256 KiB; generated files 16 MiB), by the name in the error. A first SIGINT or SIGTERM ends a load, between files and while it compares; a second one any command",
		Promises: []string{"B60"}, Tests: []string{"internal/lib/boundedfile TestRead", "internal/cli TestHostileFiles", "internal/cli TestSecondSignal", "internal/engine/docker TestHostileContext", "workshop TestInterrupted", "internal/dev/archtest TestFilesAreBounded"},
	},
	{
		ID: "F7", Attack: "Text that multiplies: variables of `.env` in each other, alternatives of `exclude` and of approvals' rules, aliases, 100,000 keys, nested defaults, schemas that only nest, 900 workers that each have 900 mounts",
		Status: Closed, Answer: "A value is at most 64 KiB once its variables are put in, those of `.env` together 1 MiB, and the variables in its lines are bounded by their work; a glob has 1,024 bytes and 256 alternatives, `exclude` of a mount 1,024 patterns with their alternatives, `.dockerignore` 1,000 and 30 s of comparing them, which an interrupt ends; YAML is 64 deep and has 100,000 values, aliases counted; a schema is 64 deep, and those of all workers together, each counted once, have 1 MiB, 20,000 values and 100,000 steps of patterns with their repetitions written out; the workers' files together 16 MiB; all workers together have 100,000 mounts, variables, rules, secrets and ports. `check-result` takes answers of up to 4 MiB, 10 s and 512 MiB. 100 problems of a file are shown, errors first, and the rest is counted",
		Promises: []string{"B60"}, Tests: []string{"workshop TestWorkIsBounded", "workshop FuzzEnvFile", "workshop FuzzLoad", "internal/engine/docker TestIgnoringEnds", "workshop TestWordsAreCounted", "workshop TestWorkerFilesAreBounded", "workshop/worker TestDepthOfSchemas", "workshop/worker TestWorkOfSchemas", "workshop TestErrorsAreNotHiddenByWarnings", "internal/lib/pathglob TestCheck", "internal/lib/pathglob FuzzCheck", "internal/app TestManyKeys", "internal/app TestResultThatTakesLong", "internal/app TestResultThatTakesMemory"},
	},
	{
		ID: "F8", Attack: "A worker that may write to the project's directory hides what is up: another name of the project (a `.git` file that names a worktree, `name:`), a nearer workshop.yaml, none any more, one that nothing reads",
		Status: Closed, Answer: "What was brought up is recorded with the user's state, where no worker gets, by its name. Commands refuse another name, and a file that a worker may have written, until it is taken down; without a file they print the `-p` to use, by which `ps` and `down` need none, and remove the secrets too",
		Promises: []string{"B8", "B11", "B60"}, Tests: []string{"internal/app TestRenamedWhileUp", "internal/app TestPlantedBelow", "internal/app TestBaselineIsFound", "internal/app TestDownByName", "e2e TestB08_BaselineStays"},
	},
	{
		ID: "F9", Attack: "Another user's workshop.yaml in a directory above the caller's, such as /tmp",
		Status: Closed, Answer: "One that was found above the working directory must be the caller's, root's or the working directory's owner's. `-f` names any",
		Promises: []string{"B43", "B45"}, Tests: []string{"internal/app TestForeignParentFile"},
	},
	{
		ID: "F10", Attack: "A tool or a key that a reader takes for a comment: `# only reads<U+2028>allowed-tools: Bash`, marks that turn text, characters that nobody sees, in workshop.yaml, a worker's file or a schema",
		Status: Closed, Answer: "YAML holds no line separators but LF and CRLF, no control characters and nothing that turns or hides text, in comments either; escapes in double quotes may. In a worker's instructions, which are prose, such characters are a warning",
		Promises: []string{"B41"}, Tests: []string{"internal/lib/yamltext TestCheck", "workshop TestYAMLIsWhatIsShown", "workshop/worker TestKeysAreWhatIsShown"},
	},
	{
		ID: "F11", Attack: "A repository whose workshop has the name of somebody's Compose project: `up` and `down` find that project's containers, networks and volumes by Compose's label, and remove them as no longer wanted",
		Status: Closed, Answer: "An object is a workshop's if it has our label with the project's directory; of a container, an image may have given it that one, so Compose's working directory must be a rendered one too. Anything else of the name is never touched: `up` refuses, `down` removes what is ours and names what stays, and refuses where nothing is. A network or volume without our label, from files that an older version rendered, is ours while our own containers alone use it",
		Remedy:   "`-p` gives a workshop another name. What plain Compose made of an older version's files and left behind without containers is refused: `docker volume rm NAME_sockets`",
		Promises: []string{"B60"}, Tests: []string{"internal/engine TestOurContainer", "internal/engine TestSift", "internal/engine TestPlansLeaveOthersAlone", "internal/engine/docker TestOthersOfTheName", "internal/engine/docker TestOthersBesideOurs", "e2e TestB60_OthersOfTheName", "e2e TestPlainCompose_Down"},
	},
	{
		ID: "F12", Attack: "Labels of an image, which its containers inherit, so that a worker isn't seen as one: `dev.llmdo.workshop.helper`, our configuration hash",
		Status: Closed, Answer: "What tells a container from another is decided by labels that whoever makes it always sets: a helper is of no service, and an engine's hash is Compose's too",
		Promises: []string{"B60"}, Tests: []string{"internal/engine TestLabelsOfAnImage", "internal/engine/docker TestImageSaysHelper"},
	},
	{
		ID: "F13", Attack: "A target whose way leads through a link: `./evil:/workspace/link/workshop-init`, where `link` of the mount around it, or of the image, leads to /opt/workshop: the repository's program is PID 1, with the secrets and with other `--tools`. A worker makes the link itself, and restarts; or an image declares volumes inside of a mount, which the engine makes on the host as root. Or a worker exchanges a directory that is pinned, such as one with a .git, for a link to any place of the host while another worker, or itself, is started",
		Status: Open, Answer: "A mount point inside of another mount is no link, is there, and is pinned in all workers that may write there; Docker's mounts are looked at again before each start, that of `restart` too, while the workers of the workshop that run and may write are paused; links of an image lead no mount into another one or into what the engine fills, and its volumes lie in no mount. The namespace engine follows no link in a mount",
		Remedy:   "Docker follows links by itself in the moment between that look and the start: what isn't a worker of this workshop, such as a worker of another one, must not write to the same directories. `docker compose up` looks neither at an image's links nor before a start: use `workshop up`",
		Promises: []string{"B7", "B12"}, Tests: []string{"internal/facts TestTargetsThroughLinks", "compose TestMountPointsInWritableMountsArePinned", "internal/engine/docker TestWaysAreLookedAtBeforeAStart", "internal/engine/docker TestWritersAreHeld", "internal/engine/docker TestLinksOfTheImage", "internal/engine/docker TestLinksOfARealImage", "internal/engine/docker TestVolumesOfTheImageInsideOfMounts", "internal/engine/namespace/container TestLinks"},
	},
	{
		ID: "F14", Attack: "What the person is shown isn't what happens: `allow: [\"${H:-api.example.org}\"]` with another `H` in the repository's `.env`; `dns:` and `proxy:` from there; `./data`, a link to ~/Documents; a host in other letters, which is mapped to another name",
		Status: Closed, Answer: "`up` says what variables stand for, through whose proxy and resolvers a worker gets out, and where links of a source lead; `config` says the latter too. A host that is mapped is named with what it is mapped to",
		Promises: []string{"B7", "B24", "B26", "B45"}, Tests: []string{"internal/cli/lifecycle TestLineSaysWhatIsOpen", "internal/cli TestScripts", "workshop TestMappedHosts"},
	},
	{
		ID: "F15", Attack: "An image archive of 20 KB that unpacks to gigabytes of holes, and goes on after Ctrl-C",
		Status: Closed, Answer: "Holes stay holes, an interrupt ends the copying, and what is unfinished is removed, or else by the next run",
		Promises: []string{"B60"}, Tests: []string{"internal/image TestHoles", "internal/image TestCanceled", "internal/image TestHalfIsNeverUsed"},
	},
	{
		ID: "F16", Attack: "A link `workers -> ~/.claude/agents` in a repository, through which `workshop init` writes",
		Status: Closed, Answer: "`init` opens its directory once and makes files below it alone; it overwrites nothing",
		Promises: []string{"B43"}, Tests: []string{"internal/cli TestScripts"},
	},
	{
		ID: "F17", Attack: "A value that `validate` takes and that fails only at `up`, as a fault of the program: a port on `::ffff:0.0.0.0`, NUL in a variable",
		Status: Closed, Answer: "Addresses are compared as what they are mapped to, NUL is refused, both with their place",
		Promises: []string{"B10", "B60"}, Tests: []string{"workshop TestInvalid"},
	},
	{
		ID: "F18", Attack: "Text of a repository that drives what shows it: ESC and BEL in a terminal, `::commands::` in a log of GitHub Actions, marks that turn text, in values of variables too",
		Status: Closed, Answer: "Every format of problems writes such characters as escapes. `config`, JSON and generated files have those of their language, and mean the same",
		Promises: []string{"B41", "B43"}, Tests: []string{"internal/diagtext TestWriters", "internal/cli TestScripts", "internal/cli TestCheckIsPrintable"},
	},
	{
		ID: "F19", Attack: "A compose.override.yaml in .workshop/NAME, or another file beside the generated ones that Compose reads by itself",
		Status: Closed, Answer: "`compile` names it, and `compile --check` fails; `workshop up` doesn't read it",
		Promises: []string{"B43"}, Tests: []string{"internal/app TestCheckOfStrangeFiles", "internal/cli TestScripts"},
	},
}
