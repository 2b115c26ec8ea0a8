package compose

import (
	"path"

	"github.com/llmdo/workshop/workshop"
)

// RefusedPaths returns the paths of B7 for a home directory ("" if there is
// none): sources are refused that are, contain or lie inside one. The engine's
// sockets are on the list by [Facts] alone.
func RefusedPaths(home string) []string {
	paths := []string{"/etc", "/proc", "/sys", "/dev", "/run", "/var/run", "/var/lib/docker"}
	if home != "" {
		for _, p := range []string{".ssh", ".aws", ".gnupg", ".docker", ".kube", ".config/gcloud"} {
			paths = append(paths, path.Join(home, p))
		}
	}
	return paths
}

// checkedSources tells which sources are refused on a machine.
type checkedSources struct {
	f     *Facts
	lists *refusedLists
}

// refusedLists holds each path together with what it really is.
type refusedLists struct {
	whole []refusedPath // refused when the source is or contains it
	all   []refusedPath // refused also when the source lies inside it
}

type refusedPath struct{ path, what string }

// refusal says why a source is refused, "" if it isn't. The source has its
// symlinks resolved.
func (c *checkedSources) refusal(source string) string {
	if c.lists == nil {
		c.lists = c.f.refused()
	}
	if source == "/" {
		return "it is the whole file system"
	}
	for _, p := range c.lists.whole {
		if why := contains(source, p); why != "" {
			return why
		}
	}
	for _, p := range c.lists.all {
		if why := contains(source, p); why != "" {
			return why
		}
		if inside(p.path, source) {
			return "it lies inside " + p.what
		}
	}
	return ""
}

func contains(source string, p refusedPath) string {
	switch {
	case source == p.path:
		return "it is " + p.what
	case inside(source, p.path):
		return "it contains " + p.what
	}
	return ""
}

// refused gathers the lists of B7 on this machine.
func (f *Facts) refused() *refusedLists {
	var l refusedLists
	add := func(list *[]refusedPath, p, what string) {
		if p == "" {
			return
		}
		*list = append(*list, refusedPath{path.Clean(p), what})
		if real := f.Real[p]; real != "" && real != p {
			*list = append(*list, refusedPath{path.Clean(real), what})
		}
	}
	add(&l.whole, f.Home, "the home directory")
	add(&l.whole, f.DataRoot, "the engine's data directory "+f.DataRoot)
	for _, p := range f.EngineSockets {
		add(&l.all, p, "the engine's socket "+p)
	}
	for _, p := range f.EngineDirs {
		add(&l.all, p, "the engine's own directory "+p)
	}
	for _, p := range RefusedPaths(f.Home) {
		add(&l.all, p, p)
	}
	return &l
}

// inside tells whether p is dir or lies below it; both are clean and absolute.
func inside(dir, p string) bool {
	_, ok := workshop.Below(p, dir)
	return ok
}
