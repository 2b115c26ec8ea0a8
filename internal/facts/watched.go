package facts

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/llmdo/workshop/compose"
)

// dependencies are directories of installed packages: nobody opens them as a project,
// and packages contain hundreds of .github directories. Git's files count there too,
// as git enters submodules anywhere.
var dependencies = map[string]bool{"node_modules": true, "site-packages": true, "bower_components": true}

// isPackages reports whether a directory is one of installed packages: one of those
// names, or of Go's module cache, which has modules as name@version and downloads
// repositories to vcs/HASH.
func isPackages(name string, in *dir) bool {
	_, version, _ := strings.Cut(name, "@v")
	return dependencies[name] || semver.IsValid("v"+version) || in.name() == "vcs" && len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

// watchedNames are files that programs of the host run or obey implicitly when somebody
// opens the directory: shells and version managers, agents' instructions, git and its
// hooks, package managers, editors and debuggers. In lower case.
var watchedNames = map[string]bool{
	".envrc": true, ".env": true, ".autoenv.zsh": true, ".mise.toml": true, "mise.toml": true, ".mise.local.toml": true, "mise.local.toml": true,
	".tool-versions": true, "flake.nix": true, "shell.nix": true, "devenv.nix": true, "devbox.json": true,
	".mcp.json": true, "claude.md": true, "claude.local.md": true, "agents.md": true, "gemini.md": true, ".cursorrules": true, "opencode.json": true, "crush.json": true, ".crush.json": true, ".aider.conf.yml": true,
	".git": true, ".gitmodules": true, ".gitattributes": true, ".pre-commit-config.yaml": true,
	"lefthook.yml": true, "lefthook.yaml": true, ".lefthook.yml": true, ".lefthook.yaml": true, "lefthook-local.yml": true,
	".npmrc": true, ".yarnrc": true, ".yarnrc.yml": true, ".pnpmfile.cjs": true,
	"devcontainer.json": true, ".devcontainer.json": true,
	".exrc": true, ".nvimrc": true, ".nvim.lua": true, ".vimrc": true, ".dir-locals.el": true, ".dir-locals-2.el": true,
	".gdbinit": true, ".lldbinit": true, ".rprofile": true, ".irbrc": true, ".pryrc": true, ".pdbrc": true, ".iex.exs": true, ".ghci": true, ".ocamlinit": true, ".octaverc": true,
	".lazygit.yml": true, "coc-settings.json": true,
	"workshop.yaml": true, "workshop.yml": true, "workshop.lock": true, "skill.md": true,
}

// watchedDirs are directories in which every file counts, like protected ones, but to
// which a worker may have reasons to write: those of other editors and agents, and of
// their tools (.bsp: build servers; .direnv: cached environments that direnv sources).
// In lower case.
var watchedDirs = map[string]bool{
	".cursor": true, ".gemini": true, ".codex": true, ".windsurf": true, ".kiro": true, ".continue": true, ".roo": true, ".qwen": true, ".amazonq": true,
	".zed": true, ".helix": true, ".devcontainer": true,
	".bsp": true, ".mise": true, ".opencode": true,
}

// watchedBelow has the files that count in directories of a name.
var watchedBelow = map[string]func(name string) bool{
	".direnv": func(name string) bool { return strings.HasSuffix(name, ".rc") },
	".cargo":  func(name string) bool { return name == "config.toml" || name == "config" },
	".hg":     func(name string) bool { return strings.HasPrefix(name, "hgrc") || name == "sharedpath" },
	".jj":     func(name string) bool { return name == "repo" || strings.Contains(name, "config") },
	"repo":    func(name string) bool { return strings.Contains(name, "config") }, // of .jj
	"mise":    func(name string) bool { return name == "config.toml" },
	"workers": func(name string) bool { return strings.HasSuffix(name, ".md") }, // of a workshop
}

// wholly reports whether every file in a directory of this name counts.
func wholly(name string) bool {
	return compose.IsProtected(name) && !isDotGit(name) || watchedDirs[strings.ToLower(name)]
}

// Watched reports whether programs of the host run or obey a file with this path, by its
// name or that of a directory above it: slashes separate them. Git directories of other
// names than .git aren't known here.
func Watched(name string) bool {
	d := &dir{rel: "."}
	dirs := strings.Split(strings.Trim(path.Clean(name), "/"), "/")
	base := dirs[len(dirs)-1]
	for _, n := range dirs[:len(dirs)-1] {
		d = d.child(n)
		d.whole = d.whole || d.isWhole()
	}
	return watched(d, base) || d.git && slices.Contains(gitFiles, base)
}

// isWhole reports whether every file in a directory counts, because of its name.
func (d *dir) isWhole() bool {
	return d.up.git && gitDirs[d.name()] || wholly(d.name()) && !d.packages && !d.dotGit
}

// inObjects reports whether d is objects/info of a git directory.
func (d *dir) inObjects() bool {
	return d.name() == "info" && d.up != nil && d.up.name() == "objects" && d.up.up != nil && d.up.up.git
}

// watched reports whether a file of d is hashed because of its name.
func watched(d *dir, name string) bool {
	if d.whole { // git runs no hook of its templates
		return !(d.name() == "hooks" && d.inGit && strings.HasSuffix(name, ".sample"))
	}
	if d.up != nil && d.up.git && gitFilesBelow[d.name()] == name {
		return true
	}
	if name == "alternates" && d.inObjects() {
		return true // it names other directories that git reads objects from
	}
	if d.dotGit || d.packages {
		return strings.EqualFold(name, ".git")
	}
	if below := watchedBelow[d.name()]; below != nil && below(name) && (d.name() != "repo" || d.up != nil && d.up.name() == ".jj") {
		return true
	}
	name = strings.ToLower(name)
	return watchedNames[name] || strings.HasSuffix(name, ".worker") || strings.HasSuffix(name, ".agent") // of a workshop
}
