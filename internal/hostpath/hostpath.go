// Package hostpath lists the host paths that no worker gets (B7). It compares text;
// callers with access to the machine also resolve links and mounts.
package hostpath

import (
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Caller is the user whose paths a list has.
type Caller struct {
	// Homes are home directories; relative ones and the root are ignored.
	Homes []string
	// Lookup returns variables of the environment; nil: none is set.
	Lookup func(string) (string, bool)
	// Project is the directory of workshop.yaml, absolute; empty: not known.
	Project string
}

// Refused is a path that no worker gets.
type Refused struct {
	// Path is absolute and clean; a trailing * matches any rest of the name. One
	// that begins with ~ is for sources with an unknown home directory.
	Path string
	// What names it in messages; empty: the path.
	What string
	// Whole: paths inside may be mounted.
	Whole bool
}

// List is the refused paths.
type List []Refused

// parentsOfHomes are the usual parents of home directories.
var parentsOfHomes = []string{"/home", "/Users"}

// For returns the list of B7 for a caller.
func For(c Caller) List {
	l := List{{Path: "/", What: "the whole file system", Whole: true}}
	for _, dir := range parentsOfHomes {
		l = append(l, Refused{dir, "the directory of the home directories", true})
	}
	for _, home := range append([]string{"~", "/root"}, c.Homes...) {
		if home = path.Clean(home); home == "~" || path.IsAbs(home) && home != "/" {
			l = append(l, ofHome(home)...)
		}
	}
	for _, place := range places {
		if path.IsAbs(place) {
			l = append(l, Refused{Path: place})
			continue
		}
		for _, p := range c.expand(place) {
			if c.Project == "" || !subpath.Within(p, c.Project) && !subpath.Within(c.Project, p) {
				l = append(l, Refused{Path: p})
			}
		}
	}
	for _, place := range own {
		for _, p := range c.expand(place) {
			l = append(l, Refused{Path: p})
		}
	}
	return l
}

// ofHome returns the refused paths of a home directory.
func ofHome(home string) List {
	l := List{{home, "a home directory", true}}
	for _, place := range slices.Concat(places, own) {
		if rest, ok := strings.CutPrefix(place, "~"); ok {
			l = append(l, Refused{Path: home + rest})
		}
	}
	return l
}

// expand returns the paths of a place given by a variable.
func (c *Caller) expand(place string) (out []string) {
	name, ok := strings.CutPrefix(place, "$")
	if !ok || c.Lookup == nil {
		return nil
	}
	name, rest, _ := strings.Cut(name, "/")
	value, ok := c.Lookup(name)
	if !ok {
		return nil
	}
	value = strings.TrimPrefix(value, "unix://")
	for _, p := range append(strings.Split(value, ":"), value) {
		if path.IsAbs(p) && !strings.HasPrefix(p, "//") {
			out = append(out, path.Join(p, rest))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Why returns why the absolute, clean path p is refused, as text that follows the path:
// "lies inside /etc". It returns "" if p is accepted. Directories that look like
// another user's home (/home/NAME) are refused like the caller's.
func (l List) Why(p string) string {
	if slices.Contains(engineSockets, path.Base(p)) {
		return "is an engine's socket"
	}
	for _, parent := range parentsOfHomes {
		if rest, ok := subpath.Below(p, parent); ok && rest != "" {
			name, below, _ := strings.Cut(rest, "/")
			if why := l.why(path.Join("~", below)); why != "" {
				return strings.Replace(why, "~", path.Join(parent, name), 1)
			}
		}
	}
	return l.why(p)
}

func (l List) why(p string) string {
	for _, r := range l {
		if why := r.why(p); why != "" {
			return why
		}
	}
	return ""
}

func (r Refused) why(p string) string {
	what := r.What
	if what == "" {
		what = r.Path
	}
	refused, pattern := strings.CutSuffix(r.Path, "*")
	switch {
	case p == refused && r.What == "":
		return "is protected"
	case p == refused:
		return "is " + what
	case subpath.Within(refused, p):
		return "contains " + what
	case r.Whole:
		return ""
	case subpath.Within(p, refused) || pattern && strings.HasPrefix(p, refused):
		return "lies inside " + what
	}
	return ""
}
