package facts

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/hostpath"
	"github.com/llmdo/workshop/internal/lib/hostlink"
)

// Homes returns the caller's home directories in the machine's user database, and for
// root those of the user that called sudo: HOME may differ.
func Homes(uid int, lookup func(string) (string, bool)) []string {
	ids := []int{uid}
	if u, _, ok := sudo(lookup); ok && uid == 0 {
		ids = append(ids, u)
	}
	var out []string
	for _, id := range ids {
		if u, err := user.LookupId(strconv.Itoa(id)); err == nil && filepath.IsAbs(u.HomeDir) {
			out = append(out, u.HomeDir)
		}
	}
	return out
}

// refusedPaths returns the paths that no worker gets on this machine (B7), as written
// and with symbolic links resolved.
func refusedPaths(o *Options, projectDir string) hostpath.List {
	l := hostpath.For(hostpath.Caller{
		Homes: append(Homes(o.UID, o.lookup), o.Home), Lookup: o.lookup, Project: projectDir,
	})
	if o.DataDir != "" {
		l = slices.DeleteFunc(l, func(r hostpath.Refused) bool { return r.Path == filepath.Clean(o.DataDir) })
	}
	add := func(what string, whole bool, paths ...string) {
		for _, p := range paths {
			if p != "" {
				l = append(l, hostpath.Refused{Path: filepath.Clean(p), What: what + " " + p, Whole: whole})
			}
		}
	}
	add("the engine's data directory", true, o.DataRoot)
	add("the engine's socket", false, o.Sockets...)
	add("the engine's own directory", false, o.EngineDirs...)
	if o.Local {
		for _, parent := range runtimeParents(o.UID, o.lookup, o.Home) {
			add("the directory of secrets", false, parent.dir)
		}
	}
	for _, r := range l {
		for _, real := range realPaths(r.Path) {
			if r.What == "" {
				r.What = r.Path
			}
			l = append(l, hostpath.Refused{Path: real, What: r.What, Whole: r.Whole})
		}
	}
	return l
}

// realPaths returns a path with symbolic links resolved, also in its parents: a
// missing file could be created by a worker that may write above it.
func realPaths(p string) (out []string) {
	if !filepath.IsAbs(p) {
		return nil
	}
	real, _ := hostlink.Follow(strings.TrimSuffix(p, "*"), nil) // too long: the path itself
	if strings.HasSuffix(p, "*") {
		real += "*"
		files, _ := filepath.Glob(p)
		for _, f := range files {
			if r, _ := hostlink.Follow(f, nil); r != f {
				out = append(out, r)
			}
		}
	}
	if real != p {
		out = append(out, real)
	}
	return out
}

// aliases recognises refused paths by device and inode: a bind mount gives a directory
// a second name, a hard link a file.
type aliases struct {
	refused map[fileID]hostpath.Refused
	above   map[fileID]hostpath.Refused // directories that contain one
}

type fileID struct{ dev, ino uint64 }

func aliasesOf(l hostpath.List) *aliases {
	a := &aliases{map[fileID]hostpath.Refused{}, map[fileID]hostpath.Refused{}}
	looked := map[string]bool{} // including all parents
	for _, r := range l {
		if !filepath.IsAbs(r.Path) {
			continue
		}
		if id, ok := identity(r.Path); ok {
			if old, seen := a.refused[id]; !seen || old.Whole {
				a.refused[id] = r
			}
		}
		for dir := filepath.Dir(r.Path); dir != "/" && !looked[dir]; dir = filepath.Dir(dir) {
			looked[dir] = true
			if id, ok := identity(dir); ok {
				if _, seen := a.above[id]; !seen {
					a.above[id] = r
				}
			}
		}
	}
	return a
}

// why returns why a resolved source is refused, "" if it isn't.
func (a *aliases) why(source string) string {
	if id, ok := identity(source); ok {
		if r, ok := a.refused[id]; ok {
			return "is another name of " + r.Path
		}
		if r, ok := a.above[id]; ok {
			return "contains " + r.Path + " under another name"
		}
	}
	for dir := filepath.Dir(source); dir != "/"; dir = filepath.Dir(dir) {
		if id, ok := identity(dir); ok {
			if r, ok := a.refused[id]; ok && !r.Whole {
				return "is inside another name of " + r.Path
			}
		}
	}
	return ""
}

// identity returns the identity of a path's target.
func identity(p string) (fileID, bool) {
	info, err := os.Stat(p)
	if err != nil {
		return fileID{}, false
	}
	return idOf(info)
}
