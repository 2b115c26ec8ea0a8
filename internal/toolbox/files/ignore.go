package files

import (
	"bytes"
	"strings"
)

// ignoring is the patterns of one .gitignore (gitignore(5)).
type ignoring []ignorePattern

type ignorePattern struct {
	again   bool // begins with !: not ignored after all
	dirOnly bool // ends with /
	name    bool // has no slash: compared with the last part of a path
	prefix  string
	rest    wild
	literal bool // prefix is all of it
}

// parseIgnore reads a .gitignore as git's dir.c does.
func parseIgnore(b []byte) ignoring {
	var out ignoring
	b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		s := string(bytes.TrimSuffix(line, []byte("\r")))
		if strings.HasPrefix(s, "#") {
			continue
		}
		if i := strings.IndexByte(s, 0); i >= 0 {
			s = s[:i] // a C string ends there
		}
		if s = trimSpaces(s); s != "" {
			out = append(out, parsePattern(s))
		}
	}
	return out
}

// trimSpaces drops blanks at the end, unless a backslash keeps one.
func trimSpaces(s string) string {
	from := -1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			if from < 0 {
				from = i
			}
			continue
		case '\\':
			if i++; i == len(s) {
				return s
			}
		}
		from = -1
	}
	if from < 0 {
		return s
	}
	return s[:from]
}

func parsePattern(s string) ignorePattern {
	var p ignorePattern
	s, p.again = strings.CutPrefix(s, "!")
	s, p.dirOnly = strings.CutSuffix(s, "/")
	p.name = !strings.Contains(s, "/")
	s = strings.TrimPrefix(s, "/")
	n := literalLength(s)
	p.literal = n == len(s)
	switch {
	case p.literal:
		p.prefix = s
	case p.name:
		p.rest = parseWild(s, false)
	default:
		// What follows the literal beginning is a pattern by itself: so git
		// takes the ** of a**/b for directories.
		p.prefix, p.rest = s[:n], parseWild(s[n:], true)
	}
	return p
}

// match compares a path below the directory of the .gitignore.
func (p *ignorePattern) match(path string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	if p.name {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	if p.literal {
		return path == p.prefix && path != ""
	}
	rest, ok := strings.CutPrefix(path, p.prefix)
	return ok && p.rest.match(rest)
}

// find returns the last pattern that matches; nil for none.
func (g ignoring) find(path string, isDir bool) *ignorePattern {
	for i := len(g) - 1; i >= 0; i-- {
		if g[i].match(path, isDir) {
			return &g[i]
		}
	}
	return nil
}

// scope is a directory whose .gitignore counts, below others.
type scope struct {
	above *scope
	skip  int // length of the directory's path, with its slash, in the paths that are asked about
	size  int // bytes of its file and of those above
	rules ignoring
}

// ignored reports whether a path is left out. Whether a directory above it is, is
// asked before: what is below such a one can't come back.
func (s *scope) ignored(path string, isDir bool) bool {
	for ; s != nil; s = s.above {
		if p := s.rules.find(path[s.skip:], isDir); p != nil {
			return !p.again
		}
	}
	return false
}

// ignoresAll reports whether all that is in a directory is left out by a rule for
// that directory: build/* and build/** are, and * in its own file.
func (s *scope) ignoresAll(dir string) bool {
	in := dir + "/"
	for ; s != nil; s = s.above {
		if p := s.rules.find(in[s.skip:]+"\x00", false); p != nil { // a name that nothing has
			return !p.again && (!p.name || s.skip == len(in))
		}
	}
	return false
}
