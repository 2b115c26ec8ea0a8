package facts

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/compose"
)

// watchedNames are files that programs of the host run, or take orders from,
// when somebody opens the directory: shells, version managers, editors, git,
// package managers, and other workers' instructions. In lower case.
var watchedNames = map[string]bool{
	".envrc": true, ".env": true, ".mise.toml": true, "mise.toml": true, ".tool-versions": true,
	".mcp.json": true, "claude.md": true, "claude.local.md": true, "agents.md": true, ".cursorrules": true,
	".git": true, ".gitmodules": true, ".gitattributes": true, ".pre-commit-config.yaml": true, "lefthook.yml": true,
	".npmrc": true, ".yarnrc": true, ".yarnrc.yml": true, ".pnpmfile.cjs": true,
	"devcontainer.json": true, ".devcontainer.json": true,
	"workshop.yaml": true, "workshop.yml": true,
}

// gitFiles are the files inside a .git directory by which git runs programs.
var gitFiles = map[string]bool{"config": true, "config.worktree": true, "info/attributes": true}

// watched tells whether a file is hashed.
func watched(rel string) bool {
	if in, ok := insideGit(rel); ok {
		return gitFiles[in] || strings.HasPrefix(in, "hooks/") ||
			(strings.HasPrefix(in, "modules/") && (path.Base(in) == "config" || path.Base(path.Dir(in)) == "hooks"))
	}
	for _, dir := range strings.Split(path.Dir(rel), "/") {
		if compose.IsProtected(dir) {
			return true // all of it: it may have been made only now
		}
	}
	return watchedNames[strings.ToLower(path.Base(rel))]
}

// entered tells whether a directory is searched: not the packages that were
// installed, nor git's objects.
func entered(rel string) bool {
	if in, ok := insideGit(rel); ok {
		base := path.Base(in)
		return base != "objects" && base != "refs" && base != "logs" && base != "lfs"
	}
	return !dependencies[path.Base(rel)]
}

// insideGit returns the path inside the innermost .git directory.
func insideGit(rel string) (string, bool) {
	parts := strings.Split(rel, "/")
	for i := len(parts) - 2; i >= 0; i-- {
		if strings.EqualFold(parts[i], ".git") {
			return strings.Join(parts[i+1:], "/"), true
		}
	}
	return "", false
}

// ownFiles are workshop.yaml and the workers' files, wherever they are.
func ownFiles(c *compose.Compiled) map[string]bool {
	out := map[string]bool{}
	for _, f := range c.WorkshopFiles() {
		out[filepath.Join(c.Facts.ProjectDir, filepath.FromSlash(f))] = true
	}
	return out
}
