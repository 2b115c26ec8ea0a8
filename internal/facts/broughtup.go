package facts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/boundedfile"
	"github.com/llmdo/workshop/internal/hostpath"
)

// ownName is the file by which a runtime directory tells that its project was
// called as the project's directory said, not by -p. In it are the directories
// that its workers may write to, with NUL between them.
const ownName = "own-name"

// maxOwnName bounds that file, in bytes.
const maxOwnName = 16 << 20

// KeepOwnName notes in a runtime directory that the project's directory named the
// project, and where its workers may write.
func KeepOwnName(runtimeDir string, c *compose.Compiled) error {
	roots := strings.Join(writableRoots(c), "\x00")
	return writeFile(filepath.Join(runtimeDir, ownName), []byte(roots), 0o600, -1, -1)
}

// Projects are the projects that were brought up from a directory by the name that
// it gave them then, and not taken down, sorted. What it calls its project now may
// be a worker's word.
func Projects(projectDir string, uid int, lookup func(string) (string, bool), home string) []string {
	if real, err := realDir(projectDir); err == nil {
		projectDir = real
	}
	var out []string
	for _, b := range broughtUp(runtimesOf(uid, lookup, home), projectDir) {
		out = append(out, b.project)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// WrittenBy returns a project that is up from a directory above a file's, and that
// directory, where the project's workers may have written the file since `up`: they
// may write there, and it isn't what it was then. "" if there is none.
func WrittenBy(file string, uid int, lookup func(string) (string, bool), home string) (project, dir string) {
	if real, err := realDir(filepath.Dir(file)); err == nil {
		file = filepath.Join(real, filepath.Base(file))
	}
	runtimes := runtimesOf(uid, lookup, home)
	for up := filepath.Dir(filepath.Dir(file)); len(runtimes) > 0; up = filepath.Dir(up) {
		for _, b := range broughtUp(runtimes, up) {
			if b.mayWrite(file) && !b.saw(file) {
				return b.project, up
			}
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	return "", ""
}

// runtimesOf lists the runtime directories of all projects.
func runtimesOf(uid int, lookup func(string) (string, bool), home string) []string {
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	var out []string
	for _, parent := range runtimeParents(uid, lookup, home) {
		if !usable(parent.dir, uid) {
			continue
		}
		entries, _ := os.ReadDir(parent.dir)
		for _, e := range entries {
			out = append(out, filepath.Join(parent.dir, e.Name()))
		}
	}
	return out
}

// ownNamed is a project that was brought up by the name that its directory gave it.
type ownNamed struct{ project, runtime string }

// broughtUp picks those of a directory.
func broughtUp(runtimes []string, projectDir string) []ownNamed {
	var out []ownNamed
	mark := directoryMark(projectDir)
	for _, dir := range runtimes {
		project, ok := strings.CutSuffix(filepath.Base(dir), mark)
		if !ok || project == "" {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, ownName)); err == nil {
			out = append(out, ownNamed{project, dir})
		}
	}
	return out
}

// mayWrite reports whether a file lies where the workers may write; what can't be
// read counts.
func (o ownNamed) mayWrite(file string) bool {
	text, err := boundedfile.Read(filepath.Join(o.runtime, ownName), maxOwnName)
	if err != nil {
		return true
	}
	for _, root := range strings.Split(string(text), "\x00") {
		if _, ok := hostpath.Below(file, root); ok && root != "" {
			return true
		}
	}
	return false
}

// saw reports whether a file is what it was at `up`.
func (o ownNamed) saw(file string) bool {
	before, err := LoadSnapshot(o.runtime)
	if err != nil {
		return false
	}
	now := Snapshot{}
	if err := now.file(file); err != nil {
		return false
	}
	return now[file] != "" && now[file] != unreadable && now[file] == before[file]
}
