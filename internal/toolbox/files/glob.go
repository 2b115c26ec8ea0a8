package files

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/llmdo/workshop/internal/lib/pathglob"
)

// glob selects paths: *, ?, [a-z], {a,b}, and ** for any number of directories.
// The zero value selects all.
type glob struct {
	pattern string
	name    bool   // compared with names alone
	base    string // the directory that all of its paths are in; empty: this one
	depth   int    // the greatest depth of its directories; -1: unknown
	hidden  bool   // a part of it begins with a dot, so hidden names are meant
}

// parseGlob reads a glob. With names, one without a slash is compared with the
// names of files at any depth.
func parseGlob(s string, names bool) (glob, error) {
	if s == "" {
		return glob{depth: -1}, nil
	}
	if strings.HasPrefix(s, "/") {
		return glob{}, errors.New("glob is relative to path; give the directory as path")
	}
	if err := pathglob.Check(s); err != nil {
		return glob{}, fmt.Errorf("glob %w", err)
	}
	g := glob{pattern: strings.TrimPrefix(s, "./"), depth: -1}
	for part := range strings.SplitSeq(g.pattern, "/") {
		if part == ".." || part == "." {
			return glob{}, fmt.Errorf("glob has the part %s; give the directory as path", part)
		}
		g.hidden = g.hidden || strings.HasPrefix(part, ".") || strings.HasPrefix(part, "{.")
	}
	if names && !strings.Contains(g.pattern, "/") {
		g.name = true
		return g, nil
	}
	if at := strings.LastIndexByte(g.pattern[:strings.IndexAny(g.pattern+"*", `*?[{\`)], '/'); at >= 0 {
		g.base = g.pattern[:at]
	}
	if !strings.Contains(g.pattern, "**") && !strings.Contains(g.pattern, "{") {
		g.depth = strings.Count(g.pattern, "/")
	}
	return g, nil
}

// match reports whether a file is meant.
func (g *glob) match(path string) bool {
	switch {
	case g.pattern == "":
		return true
	case g.name:
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	return doublestar.MatchUnvalidated(g.pattern, path)
}

// enter reports whether a file below the directory can be meant.
func (g *glob) enter(dir string) bool {
	if g.depth >= 0 && strings.Count(dir, "/") >= g.depth {
		return false
	}
	return g.base == "" || dir == g.base || strings.HasPrefix(dir, g.base+"/") || strings.HasPrefix(g.base, dir+"/")
}
