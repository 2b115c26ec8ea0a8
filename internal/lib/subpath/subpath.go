// Package subpath compares paths by their text: it follows no links.
package subpath

import (
	"path"
	"strings"
)

// Within reports whether p is dir or below it.
func Within(p, dir string) bool {
	_, ok := Below(p, dir)
	return ok
}

// Below reports whether p is dir or below it, and returns the rest: "" for dir itself.
// Both are slash-separated and need not be clean. A relative path is never below
// an absolute one.
func Below(p, dir string) (rest string, ok bool) {
	p, dir = path.Clean(p), path.Clean(dir)
	switch {
	case p == dir:
		return "", true
	case path.IsAbs(p) != path.IsAbs(dir):
		return "", false
	case dir == "/":
		return p[1:], true
	case dir == ".":
		return p, p != ".." && !strings.HasPrefix(p, "../")
	}
	return strings.CutPrefix(p, dir+"/")
}
