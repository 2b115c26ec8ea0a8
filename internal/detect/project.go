package detect

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/lib/visible"
)

const (
	// maxFile is the size of a file that is read, in bytes. A larger one counts by its
	// name alone.
	maxFile = 256 << 10
	// maxReads bounds the files and directories that are looked at in one run.
	maxReads = 2000
	// maxEntries bounds the entries of one directory that are looked at.
	maxEntries = 500
	// maxDirs bounds the directories that are looked into for projects.
	maxDirs = 50
	// maxAgents bounds the definitions of workers that are listed.
	maxAgents = 20
)

// project is a directory of the repository.
type project struct {
	fsys fs.FS
	dir  string
	left int // reads
}

func (p *project) in(dir string) *project { return &project{fsys: p.fsys, dir: dir, left: p.left} }

func (p *project) spend() bool {
	p.left--
	return p.left >= 0
}

// has reports whether there is a regular file, at most behind links inside of the
// repository.
func (p *project) has(name string) bool {
	if !p.spend() {
		return false
	}
	info, err := fs.Stat(p.fsys, path.Join(p.dir, name))
	return err == nil && info.Mode().IsRegular()
}

// first is the first of these files that is there; empty: none.
func (p *project) first(names ...string) string {
	for _, name := range names {
		if p.has(name) {
			return name
		}
	}
	return ""
}

func (p *project) hasDir(name string) bool {
	if !p.spend() {
		return false
	}
	info, err := fs.Stat(p.fsys, path.Join(p.dir, name))
	return err == nil && info.IsDir()
}

// read is a file's text; empty where it can't be read, or is too large.
func (p *project) read(name string) string {
	if !p.spend() {
		return ""
	}
	text, err := boundedfile.ReadFS(p.fsys, path.Join(p.dir, name), maxFile)
	if err != nil {
		return ""
	}
	return string(text)
}

// entries are the first entries of a directory with names that a person can read.
func (p *project) entries(name string) []fs.DirEntry {
	if !p.spend() {
		return nil
	}
	f, err := p.fsys.Open(path.Join(p.dir, name))
	if err != nil {
		return nil
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	list, _ := d.ReadDir(maxEntries)
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { return strings.ContainsFunc(e.Name(), visible.Hidden) })
	sortfunc.Stable(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list
}

// notProjects are directories that are never a part of the project by themselves.
var notProjects = []string{"node_modules", "vendor", "testdata", "third_party", "dist", "build", "target", "examples", "example"}

// directories are those of the root, and those in them, in which a project may be.
func (p *project) directories() (out []string) {
	level := []string{"."}
	for range 2 {
		var next []string
		for _, dir := range level {
			for _, e := range p.entries(dir) {
				name := e.Name()
				if !e.IsDir() || strings.HasPrefix(name, ".") || slices.Contains(notProjects, name) || len(out)+len(next) >= maxDirs {
					continue
				}
				next = append(next, path.Join(dir, name))
			}
		}
		out, level = append(out, next...), next
	}
	return out
}

// hasLine reports whether a line of the text begins so, after blanks.
func hasLine(text string, begins ...string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		if slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(line, b) }) {
			return true
		}
	}
	return false
}
