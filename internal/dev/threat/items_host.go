package threat

// hostItems are about files that a worker leaves in an rw mount, and that a
// program of the host runs or obeys later without being asked to.
var hostItems = []Item{
	{
		ID: "H1", Attack: "A git directory of another name than `.git`: a bare repository, one with a `commondir`, one that a `.git` file or link names, a submodule called `x/refs`; its configuration runs a command at the next `git status`. With `git: rw`: an index with an entry `.git/hooks/post-checkout` or `../../.bashrc`, which `git checkout` writes; a link `.git/logs/HEAD` to `~/.bashrc`; a source inside of a git directory, such as its hooks",
		Fell:   []string{"git, unless `safe.bareRepository` is `explicit`"},
		Status: Closed, Answer: "Whatever git takes for a git directory counts as `.git`: those that are there at `up` are held read-only, new ones and changes of `config`, `config.worktree`, `commondir`, `gitdir`, attributes, hooks and what an unfinished rebase goes on with are named. So are symbolic links there, and, each time, an index with a path that git refuses to add, or one that can't be read, can be read in two ways or has more than 64 MiB (\"not fully checked\"). What is or lies in hooks by its real path is never writable, whatever `git:` and `outside_project:` say; any other source in a git directory is watched by its place there",
		Remedy:   "Named is not prevented: `workshop ps --strict` before git, and `git config --global safe.bareRepository explicit`. Flags in an index (`skip-worktree`) hide changes from `git status`",
		Promises: []string{"B8"}, Tests: []string{"internal/facts TestWhatGitRunsIsNamed", "internal/facts TestGitDirectoriesAreHeld", "internal/facts TestSourceIsAGitDirectory", "internal/facts TestProjectIsAGitDirectory", "internal/facts TestIndex", "internal/facts TestIndexesOfGit", "internal/facts FuzzIndex", "e2e TestB08_NothingPlantedForTheHost"},
	},
	{
		ID: "H2", Attack: "Files of the tree that git's configuration names: `include.path`, `core.hooksPath`, programs, in the repository's configuration, the user's (also where `XDG_CONFIG_HOME`, `GIT_CONFIG_GLOBAL`, `GIT_CONFIG_SYSTEM` or `GIT_CONFIG_COUNT` say it is), or that of a repository around the mount",
		Status: Closed, Answer: "Configuration is read, by no program of git's, and each word of a value that is the name of a file in an `rw` mount is watched, included files and hooks directories as a whole",
		Remedy:   "A program that is found by `PATH`, and what it runs itself",
		Promises: []string{"B8"}, Tests: []string{"internal/facts TestWhatGitRunsIsNamed", "internal/facts TestWhatGitRunsByTheEnvironmentIsNamed", "internal/facts TestGitConfigOfTheEnvironment", "internal/facts TestGitConfig", "internal/facts FuzzGitConfig"},
	},
	{
		ID: "H3", Attack: "Files that shells, version managers, editors, debuggers and other agents run when a directory is opened: `.envrc`, `mise.toml`, `.vscode`, `.cursor`, `.nvim.lua`, also behind links",
		Status: Closed, Answer: "Directories that tools execute (docs/security.md) are held read-only, the names that are known to do so are watched, and what links among them lead to",
		Remedy:   "Names that nobody listed, and programs that a language server or an editor takes from the tree (`.venv/bin/python`, `node_modules`, `eslint.config.js`, build scripts)",
		Promises: []string{"B8"}, Tests: []string{"internal/facts TestWhatOthersRunIsNamed", "internal/facts TestSnapshot", "e2e TestB08_NothingPlantedForTheHost"},
	},
	{
		ID: "H4", Attack: "A tree that can't be searched: directories in each other beyond every path's length, millions of files, closed directories, so that a command fails or doesn't see",
		Status: Closed, Answer: "The search goes by descriptors, at most 128 directories and 3,072 characters deep and over 2,000,000 entries. It goes on, and says \"not fully checked\" with the place; `up --strict`, `ps --strict` and `down --strict` exit with 4. A directory that was closed since `up` is named",
		Remedy:   "Without `--strict`, `up` goes on: a `.git` beyond the bounds isn't held. More than 128 protected directories below one mount are refused, by name, as sockets are",
		Promises: []string{"B8", "B60"}, Tests: []string{"internal/facts TestWhatIsBeyondTheBounds", "internal/facts TestBoundsOfASnapshot", "internal/facts TestClosedDirectoryIsNamed", "internal/facts TestTooManyProtected", "e2e TestB08_NothingPlantedForTheHost"},
	},
	{
		ID: "H5", Attack: "A change that a digest doesn't see: far inside a huge file, or among more files than are read",
		Status: Closed, Answer: "Of a file beyond 16 MiB, or beyond 256 MiB of all, inode and time of change count, which nobody sets",
		Promises: []string{"B8"}, Tests: []string{"internal/facts TestDigestOfLargeFiles"},
	},
	{
		ID: "H6", Attack: "A file that is planted, run by a program of the host, and removed, or moved about while `ps` looks",
		Status: Open, Answer: "`ps` and `down` compare two moments. What was there between them, and what is moved from where the search hasn't been to where it was, isn't seen",
		Remedy:   "Run git, editors and shells in a directory that a worker writes to after `workshop down --strict`",
		Promises: []string{"B8"},
	},
	{
		ID: "H7", Attack: "What a worker planted becomes the baseline, or is compared with nothing: it stops the workshop so that the next `call` starts it, takes the mount or itself out of workshop.yaml, removes that file",
		Status: Closed, Answer: "The first `up` notes what was there, where workers may write, and the workshop's own files. Later ones add to it and replace nothing; it ends with `down`, or is taken anew by `up --accept-watched`. A start that nobody asked for is refused where something changed. What can't be compared is said, and `--strict` exits with 4",
		Promises: []string{"B8"}, Tests: []string{"internal/app TestBaselineStays", "internal/app TestBaselineIsFound", "internal/app TestNoBaseline", "internal/app TestAnotherDirectory", "internal/facts TestRecord", "e2e TestB08_BaselineStays"},
	},
	{
		ID: "H8", Attack: "Links of the repository, beside an `rw` mount, that lead into it: `.vscode -> out/v`, `.envrc -> out/e`, `workshop.yaml -> out/conf`, also before there is such a file",
		Status: Closed, Answer: "Links of watched names, and those on the way to the workshop's own files, are looked for in the whole project. What they lead to in an `rw` mount is watched as that name, and so is where they lead",
		Remedy:   "Links are watched, not held: mount no directory `rw` that such links lead into",
		Promises: []string{"B8", "B40"}, Tests: []string{"internal/facts TestProjectLinks"},
	},
	{
		ID: "H9", Attack: "The workshop's own files in an `rw` mount: a worker writes `network: open` and other tools into workshop.yaml, a worker's file, the schema of a result, `.env` or a file of `--env-file`",
		Status: Open, Answer: "No mount can hold a file: a save by rename on the host takes the mount away. They are compared with what the first `up` found, by whatever name they have; `ps` and `down` name them, `up --strict` refuses, and so does a start that nobody asked for, by `call` or a client. A workshop.yaml that is found, not named by `-f`, and that such a worker changed, is refused until it is taken down",
		Remedy:   "`up` without `--strict`, and with `-f`, does what the files say, once it has named them. Mount no directory `rw` that has them in it: `./src`, not `.`",
		Promises: []string{"B8", "B40", "B41"}, Tests: []string{"internal/facts TestOwnFiles", "internal/app TestEnvFilesAreWatched", "internal/app TestBaselineStays", "internal/app TestPlantedBelow", "e2e TestB08_BaselineStays"},
	},
}
