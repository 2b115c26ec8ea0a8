package threat

// hostItems are about files that a worker leaves in an rw mount, and that a
// program of the host runs or obeys later without being asked to.
var hostItems = []Item{
	{
		ID: "H1", Attack: "A git directory not called `.git`: bare, with a `commondir`, named by a `.git` file or link, a submodule; its configuration runs a command at the next `git status`. With `git: rw`, an index entry or link through which git writes to `.git/hooks` or `~/.bashrc`; a source inside a git directory",
		Fell:   []string{"git, unless `safe.bareRepository` is `explicit`"},
		Status: Closed, Answer: "What git takes for a git directory, and a `.git` file, are read-only if they exist at `up`, else named. Named too: changes of configuration, `commondir`, `gitdir`, attributes, hooks and an unfinished rebase; links there; an index that is unreadable, ambiguous, over 64 MiB or has a path that git refuses to add. Hooks are never writable. Other sources in a git directory are watched by their place there",
		Remedy:   "Named is not prevented: [what to do before git](security.md#what-is-not-protected)",
		Promises: []string{"B8"}, Tests: []string{"internal/facts TestWhatGitRunsIsNamed", "internal/facts TestGitDirectoriesAreHeld", "internal/facts TestProtectedDirectoriesHoldInAContainer", "internal/facts TestSourceIsAGitDirectory", "internal/facts TestProjectIsAGitDirectory", "internal/facts TestIndex", "internal/facts TestIndexesOfGit", "internal/facts FuzzIndex", "e2e TestB08_NothingPlantedForTheHost"},
	},
	{
		ID: "H2", Attack: "Files in the tree that git configuration names: `include.path`, `core.hooksPath`, programs, in the repository's, a surrounding one's, the user's or the environment's; a directory on the way replaced by a link to a prepared one",
		Status: Closed, Answer: "Words of values that name a file in an `rw` mount are watched, unless git never takes that variable's value for a path or a program; included files and hooks directories entirely. A file that it begins to name is named, and so is what leads out of the mount since",
		Remedy:   "A program found by `PATH`, and what it runs",
		Promises: []string{"B8"}, Tests: []string{"internal/facts TestWhatGitRunsIsNamed", "internal/facts TestWatchedWaysAreReplaced", "internal/facts TestNamesInConfiguration", "internal/facts TestWhatGitRunsByTheEnvironmentIsNamed", "internal/facts TestGitConfigOfTheEnvironment", "internal/facts TestGitConfig", "internal/facts FuzzGitConfig"},
	},
	{
		ID: "H3", Attack: "What shells, editors, debuggers and agents run when a directory is opened: `.envrc`, `mise.toml`, `.vscode`, `.cursor`, `.nvim.lua`, also through links",
		Status: Closed, Answer: "Directories that tools execute are read-only; known file names and link targets are watched",
		Remedy:   "Unlisted names, and [what editors take from the tree](security.md#what-is-not-protected). Use an editor that asks before it trusts a directory",
		Promises: []string{"B8"}, Tests: []string{"internal/facts TestWhatOthersRunIsNamed", "internal/facts TestSnapshot", "e2e TestB08_NothingPlantedForTheHost"},
	},
	{
		ID: "H4", Attack: "A tree that can't be searched: paths too long, millions of files, closed directories",
		Status: Closed, Answer: "Beyond 128 directories, 3,072 characters or 2,000,000 entries commands say \"not fully checked\" with the place, and `--strict` exits with 4. A directory closed since the first `up` is named",
		Remedy:   "Without `--strict`, `up` goes on: a `.git` beyond the limits isn't protected. More than 128 protected directories below a mount are refused, and so are sockets",
		Promises: []string{"B8", "B60"}, Tests: []string{"internal/facts TestWhatIsBeyondTheBounds", "internal/facts TestBoundsOfASnapshot", "internal/facts TestClosedDirectoryIsNamed", "internal/facts TestTooManyProtected", "e2e TestB08_NothingPlantedForTheHost"},
	},
	{
		ID: "H5", Attack: "A change that a digest misses: deep in a huge file, or among more files than are read",
		Status: Closed, Answer: "Beyond 16 MiB of a file, or 256 MiB of all, inode and change time count, which nobody sets",
		Promises: []string{"B8"}, Tests: []string{"internal/facts TestDigestOfLargeFiles"},
	},
	{
		ID: "H6", Attack: "A file planted, run and removed between two comparisons, or moved during one",
		Status: Open, Answer: "`ps` and `down` compare two moments, and miss what moves from an unsearched place to a searched one",
		Remedy:   "Run git, editors and shells where a worker writes only after `workshop down --strict`",
		Promises: []string{"B8"},
	},
	{
		ID: "H7", Attack: "A planted file becomes the baseline, or isn't compared: a worker stops the workshop so that the next `call` starts it, or edits or removes workshop.yaml; another checkout of the same name comes up; the directory is moved or replaced on the host",
		Status: Closed, Answer: "The first `up` [records](mounts.md#what-is-compared-b8) what was there, until `up --accept-watched` or `down --accept-watched`. An automatic start is refused after a change, and so is the name in another directory. A worker ends when a source is renamed. What can't be compared is named",
		Promises: []string{"B8"}, Tests: []string{"internal/app TestBaselineStays", "internal/app TestBaselineIsFound", "internal/app TestNoBaseline", "internal/app TestAnotherDirectory", "internal/app TestPendingElsewhere", "internal/app TestReplacedRoot", "internal/facts TestRecord", "internal/facts TestReplacedRoots", "internal/facts TestOpenings", "internal/workerinit TestB08_ReplacedSourceEndsTheWorker", "e2e TestB08_BaselineStays", "e2e TestB08_ReplacedSourceEndsTheWorker"},
	},
	{
		ID: "H8", Attack: "Links of the repository into an `rw` mount, even dangling: `.vscode -> out/v`, `workshop.yaml -> out/conf`, `workers -> out/w`, also of another project's mount; a worker writes there, or replaces `out/w` by a link to another directory",
		Status: Closed, Answer: "Targets of links with watched names, or on the way to the workshop's own files, are watched under that name, and where those lead. A path counts as a worker's to write if a link or directory that it leads through is: the workshop's own files are reviewed then (H9), questions about a call say it, and `validate` warns",
		Remedy:   "Watched, not protected: mount no directory `rw` that such links lead into",
		Promises: []string{"B8", "B40"}, Tests: []string{"internal/facts TestProjectLinks", "internal/facts TestLinksOnTheWay", "internal/facts TestWatchedWaysAreReplaced", "internal/app TestWorkersBelowALink", "internal/app TestB08_Obeyed", "workshop TestPolicyFilesByLinks"},
	},
	{
		ID: "H9", Attack: "The workshop's own files in an `rw` mount: a worker writes `network: open` and other tools into them, or other values into a file of `--env-file`, by whatever path that and the project are named",
		Status: Closed, Answer: "What each worker mounts read-only can't be written until something replaces it on the host, and the worker ends then (exit code 3). All else, and that too once it was replaced, is [compared](mounts.md#what-is-compared-b8): what loads it shows changed lines and obeys them only after a yes, whatever the project is called",
		Promises: []string{"B8", "B40", "B41"}, Tests: []string{"internal/facts TestOwnFiles", "internal/app TestDefinitionOfOthers", "internal/app TestDefinitionBelow", "internal/app TestToolsOfChangedDefinition", "internal/app TestObeyedIsNoted", "internal/app TestAcceptedIsShown", "internal/app TestFilesAreReadOnce", "internal/facts TestRewrite", "internal/app TestDefinitionThatAWorkerMayHaveWritten", "e2e TestB08_SavedByRenameIsReviewed", "internal/facts TestOpenings", "internal/facts TestUnopenedFileOfAnotherProject", "internal/app TestEnvFilesAreWatched", "internal/app TestEnvFileByAnotherPath", "internal/app TestBaselineStays", "internal/app TestPlantedBelow", "internal/workerinit TestB08_LostMountEndsTheWorker", "e2e TestB03_LostMountEndsTheWorker", "e2e TestB03_OwnSavesLoseNoMount", "e2e TestB08_OwnEdits", "e2e TestB08_BaselineStays"},
	},
	{
		ID: "H10", Attack: "A `.git` file that a repository or a worker wrote names another repository of the user; or a worker with `git: rw` in a linked worktree or submodule plants hooks, configuration, `commondir`, alternates or another worktree's files in the repository outside of its mount",
		Status: Closed, Answer: "A repository is mounted only if it names the worktree back in a file outside of the checkout (`gitdir` of its own directory, a submodule's `core.worktree`), belongs to the same user and isn't refused as a source. Without `git: rw` it is read-only. With it, hooks, `config`, `info`, `objects/info` and all other directories are read-only mounts, apart from objects, refs, logs and the worktree's own directory, of which `commondir` and `gitdir` are read-only; a `config` that is replaced on the host ends the worker. New files, such as `.git/commondir`, are [compared](mounts.md#what-is-compared-b8)",
		Remedy:   "Run `workshop ps --strict` before git works in any worktree of the repository; for more, a clone for each task",
		Promises: []string{"B7", "B8"}, Tests: []string{"internal/facts TestB07_GitFileProvesNothing", "internal/facts TestB08_LinkedWorktree", "internal/facts TestB08_RepositoryThatIsNotWritable", "compose TestB08_LinkedRepository", "compose TestB08_CheckFindsWritableRepository", "e2e TestB08_LinkedWorktrees", "e2e TestB08_WorktreeIsReadOnly", "e2e TestB07_GitFileMountsNothing", "e2e TestB08_Submodules"},
	},
}
