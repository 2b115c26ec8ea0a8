package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/fileowner"
	"github.com/llmdo/workshop/internal/lib/hostlink"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// use is how one source is mounted by all workers together.
type use struct {
	source    string // as written
	at        diag.Range
	bind      bool // at least one mount isn't a copy
	readWrite bool
	sockets   bool   // all binds have `sockets: allow`
	outside   bool   // a mount has outside_project
	user      string // of the first worker that writes
}

// uses lists the sources of all workers in order of their first mention.
func (c *collector) uses() []*use {
	var list []*use
	byName := map[string]*use{}
	for i := range c.o.Workshop.Workers {
		w := &c.o.Workshop.Workers[i]
		for j := range w.Container.Mounts {
			m := &w.Container.Mounts[j]
			u := byName[m.Source.V]
			if u == nil {
				u = &use{source: m.Source.V, at: m.At.Range, sockets: true}
				byName[m.Source.V] = u
				list = append(list, u)
			}
			u.add(m, c.users[w.Name])
		}
	}
	return list
}

func (u *use) add(m *workshop.Mount, user string) {
	u.outside = u.outside || m.OutsideProject
	if m.IsCopy() {
		return
	}
	u.bind = true
	u.sockets = u.sockets && m.AllowSockets
	if m.ReadWrite && !u.readWrite {
		u.readWrite, u.user = true, user
	}
}

// sources checks every mount source.
func (c *collector) sources(ctx context.Context) {
	mounted, err := mountPoints()
	if err != nil {
		c.problem("mounts-unknown", diag.Range{Filename: c.o.Workshop.File}, "can't read the mounts: "+err.Error(), "is /proc mounted?")
	}
	for _, u := range c.uses() {
		path := c.abs(u.source)
		if u.readWrite {
			c.create(u, path)
		}
		sf, err := statSource(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // reported by WithFacts
		}
		if err != nil {
			c.problem("mount-source-unreadable", u.at, fmt.Sprintf("can't check %s: %v", u.source, err), "")
			continue
		}
		if c.o.Local {
			sf.Alias = c.names.why(sf.Real)
		}
		if u.bind && c.o.Local {
			sf.MountPoints = below(mounted, sf.Real)
			c.search(ctx, u, &sf)
		}
		c.facts.Sources[u.source] = sf
	}
	c.granted()
	c.points()
}

// points checks the mount points of mounts inside others.
func (c *collector) points() {
	c.facts.Points = map[string]compose.PointFacts{}
	for i := range c.o.Workshop.Workers {
		mounts := c.o.Workshop.Workers[i].Container.Mounts
		around := workshop.Around(mounts)
		for j := range mounts {
			outer := around(&mounts[j])
			if outer == nil || !c.facts.Sources[outer.Source.V].Exists {
				continue
			}
			real := c.facts.Sources[outer.Source.V].Real
			rel := strings.TrimPrefix(mounts[j].Target.V, outer.Target.V+"/")
			link, err := hostlink.Below(real, rel)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				c.problem("mount-source-unreadable", mounts[j].At.Range, fmt.Sprintf("can't check the mount point of %s: %v", mounts[j].Target.V, err), "")
			}
			c.facts.Points[filepath.Join(real, rel)] = compose.PointFacts{Exists: err == nil, Link: link}
		}
	}
}

// abs returns the absolute path of a source, which may be relative to the project.
func (c *collector) abs(source string) string {
	if filepath.IsAbs(source) {
		return filepath.Clean(source)
	}
	return filepath.Join(c.facts.ProjectDir, source)
}

// granted resolves the workshop's sources below which workers mount something, even if
// no worker mounts those sources themselves (B40).
func (c *collector) granted() {
	for i := range c.o.Workshop.Workers {
		for _, m := range c.o.Workshop.Workers[i].Container.Mounts {
			for _, source := range m.Within {
				if _, known := c.facts.Sources[source]; known {
					continue
				}
				if sf, err := statSource(c.abs(source)); err == nil {
					c.facts.Sources[source] = sf
				}
			}
		}
	}
}

// statSource returns the facts of one source, after resolving symlinks.
func statSource(path string) (compose.SourceFacts, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return compose.SourceFacts{}, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return compose.SourceFacts{}, err
	}
	sf := compose.SourceFacts{Exists: true, Dir: info.IsDir(), Real: real, Mode: uint32(info.Mode().Perm()), ACL: hasACL(real)}
	sf.UID, sf.GID, _ = fileowner.Of(info)
	if special(info.Mode()) {
		sf.Specials = []string{real}
	}
	return sf, nil
}

// special reports whether a file is a socket, FIFO or device.
func special(m fs.FileMode) bool {
	return m&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice|fs.ModeCharDevice) != 0
}

// below returns the mount points strictly below dir.
func below(points []string, dir string) []string {
	var out []string
	for _, p := range points {
		if rest, ok := subpath.Below(p, dir); ok && rest != "" {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
