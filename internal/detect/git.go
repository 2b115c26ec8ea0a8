package detect

import (
	"io/fs"
	"strings"
)

func git(p *project, f *Found) {
	info, err := fs.Stat(p.fsys, ".git")
	switch {
	case err != nil:
	case info.IsDir():
		f.find(p, ".git", "a git repository", "read-only: workers change files, you commit")
	case info.Mode().IsRegular() && strings.Contains(p.read(".git"), "/modules/"):
		f.find(p, ".git", "a git submodule", "its repository is mounted read-only")
	case info.Mode().IsRegular():
		f.find(p, ".git", "a linked git worktree", "its repository is mounted read-only")
	}
}
