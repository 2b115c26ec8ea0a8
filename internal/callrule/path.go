package callrule

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/llmdo/workshop/internal/lib/pathglob"
	"github.com/llmdo/workshop/tool"
)

// maxPath is the longest path that Linux takes (PATH_MAX).
const maxPath = 4096

// glob is a path with *, **, ?, [a-z] and {a,b}, absolute or below the worker's
// working directory.
type glob string

func parsePath(match string) (matcher, *Error) {
	m := strings.TrimPrefix(match, "./")
	switch {
	case slices.Contains(strings.Split(m, "/"), ".."):
		return nil, &Error{Summary: "the match " + quote(match) + " leaves its directory", Hint: "write an absolute path, or one below the worker's working directory"}
	case strings.HasPrefix(m, "~"):
		return nil, &Error{Summary: "the match " + quote(match) + " begins with ~, which is not expanded here", Hint: "write the path out: /home/worker/…"}
	case strings.HasSuffix(m, "/") && m != "/":
		return nil, &Error{Summary: "the match " + quote(match) + " ends with a slash", Hint: "write " + m + "** for what is in the directory"}
	case pathglob.Alternatives(m) > pathglob.MaxAlternatives:
		return nil, &Error{Summary: "the match " + quote(match) + " has too many alternatives", Hint: "write a rule for each"}
	case m == "" || pathglob.Check(m) != nil || path.Clean(m) != m || strings.ContainsRune(m, 0):
		return nil, &Error{Summary: "the match " + quote(match) + " can't be read as a path", Hint: "write a path such as src/main.go or src/**; a backslash before *, ?, [ and { makes them plain"}
	}
	return glob(m), nil
}

// fileArgs is what the arguments of a tool for files tell.
type fileArgs struct {
	path  string
	below bool // the call is about everything below the path too
	glob  string
}

func fileArgsOf(c Call) (fileArgs, bool) {
	switch c.Tool {
	case tool.ReadFile:
		var a tool.ReadFileArgs
		err := tool.Decode(c.Args, &a)
		return fileArgs{path: a.Path}, err == nil && a.Path != ""
	case tool.WriteFile:
		var a tool.WriteFileArgs
		err := tool.Decode(c.Args, &a)
		return fileArgs{path: a.Path}, err == nil && a.Path != ""
	case tool.EditFile:
		var a tool.EditFileArgs
		err := tool.Decode(c.Args, &a)
		return fileArgs{path: a.Path}, err == nil && a.Path != ""
	case tool.ListFiles:
		var a tool.ListFilesArgs
		err := tool.Decode(c.Args, &a)
		return directory(a.Path, a.Glob), err == nil
	case tool.SearchFiles:
		var a tool.SearchFilesArgs
		err := tool.Decode(c.Args, &a)
		return directory(a.Path, a.Glob), err == nil
	}
	return fileArgs{}, false
}

func directory(p, g string) fileArgs {
	if p == "" {
		p = "."
	}
	return fileArgs{path: p, below: true, glob: g}
}

// readable are paths that are compared at all.
func (a fileArgs) readable() bool { return len(a.path) <= maxPath && !strings.ContainsRune(a.path, 0) }

// leaves reports whether the path has a .., which a symbolic link before it would
// take elsewhere than the text says.
func (a fileArgs) leaves() bool {
	return slices.Contains(strings.Split(a.path, "/"), "..")
}

// place makes the path one that the pattern can be compared with: both absolute,
// or both below the working directory. ok is false where the directory is
// unknown; out reports whether the path is outside of it.
func (m glob) place(p, workdir string) (clean string, out, ok bool) {
	p = path.Clean(p)
	switch {
	case path.IsAbs(string(m)) && !path.IsAbs(p):
		if workdir == "" {
			return "", false, false
		}
		p = path.Join(workdir, p)
	case !path.IsAbs(string(m)) && path.IsAbs(p):
		if workdir == "" {
			return "", false, false
		}
		workdir = path.Clean(workdir)
		if p == workdir {
			return ".", false, true
		}
		below, found := strings.CutPrefix(p, strings.TrimSuffix(workdir, "/")+"/")
		if !found {
			return "", true, true
		}
		p = below
	}
	return p, p == ".." || strings.HasPrefix(p, "../"), true
}

func (m glob) grants(c Call) bool {
	a, ok := fileArgsOf(c)
	if !ok || !a.readable() || a.leaves() || slices.Contains(strings.Split(a.glob, "/"), "..") || strings.HasPrefix(a.glob, "/") {
		return false
	}
	p, out, ok := m.place(a.path, c.Workdir)
	if !ok || out {
		return false
	}
	// All below a directory is only granted by a pattern that has all of it.
	if a.below && !m.all(p) {
		return false
	}
	return m.matches(p)
}

// all reports whether the pattern has everything below a directory.
func (m glob) all(dir string) bool {
	prefix, ok := strings.CutSuffix(string(m), "**")
	if !ok {
		return false
	}
	if prefix == "" {
		return true
	}
	prefix = strings.TrimSuffix(prefix, "/")
	for d := dir; ; d = path.Dir(d) {
		if ok, err := doublestar.Match(cmpRoot(prefix), d); err == nil && ok {
			return true
		}
		if d == "." || d == "/" {
			return false
		}
	}
}

// cmpRoot: the prefix of /** is the root.
func cmpRoot(prefix string) string {
	if prefix == "" {
		return "/"
	}
	return prefix
}

func (m glob) matches(p string) bool {
	ok, err := doublestar.Match(string(m), p)
	return err == nil && ok
}

func (m glob) restricts(c Call) Certainty {
	a, ok := fileArgsOf(c)
	if !ok || !a.readable() {
		return Maybe
	}
	p, out, ok := m.place(a.path, c.Workdir)
	switch {
	case !ok:
		return Maybe
	case !out && m.matches(p):
		return Yes
	case a.leaves() || strings.Contains(a.glob, ".."):
		return Maybe
	case a.below && !out && m.under(p):
		return Maybe
	}
	return No
}

// under reports whether something below a directory may match.
func (m glob) under(dir string) bool {
	base, _ := doublestar.SplitPattern(string(m))
	base = path.Clean(base)
	return dir == "." || dir == "/" || base == "." || base == "/" || base == dir ||
		strings.HasPrefix(base, dir+"/") || strings.HasPrefix(dir, base+"/")
}
