package facts

import (
	"os"
	"path/filepath"
	"strings"
)

// gitLayout is the parts of a git directory that a directory has. Git recognises a
// git directory of any name by a HEAD, and by objects and refs, which may be in
// another directory named by the file commondir (is_git_directory in git's setup.c).
// The content of HEAD and the types of objects and refs don't count here: watching a
// directory that git refuses is harmless.
type gitLayout struct{ head, objects, refs, commondir bool }

func (l *gitLayout) see(name string) {
	switch name {
	case "HEAD":
		l.head = true
	case "objects":
		l.objects = true
	case "refs":
		l.refs = true
	case "commondir":
		l.commondir = true
	}
}

// layoutOf returns the layout of a directory by its path.
func layoutOf(dir string) (l gitLayout) {
	for _, name := range []string{"HEAD", "objects", "refs", "commondir"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			l.see(name)
		}
	}
	return l
}

// git reports whether git may read configuration here: from a git directory, or from
// one named by a commondir file, which needs no HEAD.
func (l gitLayout) git() bool { return l.objects && l.refs || l.opens() }

// opens reports whether git may recognise the directory as a git directory.
func (l gitLayout) opens() bool { return l.head && (l.commondir || l.objects && l.refs) }

func isDotGit(name string) bool { return strings.EqualFold(name, ".git") }

// gitFiles are files of a git directory that make git run programs, or name other
// such files (gitrepository-layout(5)).
var gitFiles = []string{"config", "config.worktree", "commondir", "gitdir"}

// gitFilesBelow are such files in its subdirectories.
var gitFilesBelow = map[string]string{"info": "attributes"}

// gitDirs are directories of a git directory in which every file counts: hooks,
// remotes in old formats, and the state of an unfinished rebase or cherry-pick, which
// has commands and strategies.
var gitDirs = map[string]bool{
	"hooks": true, "remotes": true, "branches": true, "rebase-merge": true, "rebase-apply": true, "sequencer": true,
}
