package facts

import (
	"os"
	"path/filepath"
	"strings"
)

// gitLayout is what a directory has of a git directory. Git takes a directory
// for one whatever its name is: by a HEAD, and objects and refs, which may lie
// in another directory that the file commondir names (is_git_directory of git's
// setup.c). What HEAD says is left out, and so is what objects and refs are: a
// directory that git refuses is watched for nothing.
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

// layoutOf looks at a directory by its path.
func layoutOf(dir string) (l gitLayout) {
	for _, name := range []string{"HEAD", "objects", "refs", "commondir"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			l.see(name)
		}
	}
	return l
}

// git reports whether git may read configuration here: a git directory, or what
// the commondir of one may name, which needs no HEAD.
func (l gitLayout) git() bool { return l.objects && l.refs || l.opens() }

// opens reports whether git may take the directory for a git directory.
func (l gitLayout) opens() bool { return l.head && (l.commondir || l.objects && l.refs) }

func isDotGit(name string) bool { return strings.EqualFold(name, ".git") }

// gitFiles are the files of a git directory by which git runs programs, or
// finds others that say so (gitrepository-layout(5)).
var gitFiles = []string{"config", "config.worktree", "commondir", "gitdir"}

// gitFilesBelow are those in its directories.
var gitFilesBelow = map[string]string{"info": "attributes"}

// gitDirs are directories of a git directory in which every file counts: hooks,
// old ways to write remotes, and what an unfinished rebase or cherry-pick goes
// on with, which names commands and strategies.
var gitDirs = map[string]bool{
	"hooks": true, "remotes": true, "branches": true, "rebase-merge": true, "rebase-apply": true, "sequencer": true,
}
