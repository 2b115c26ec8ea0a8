package docker

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/hostlink"
)

// checkWays checks the paths of a worker's mounts immediately before each start,
// including restarts. The engine follows symbolic links: in a source to any path of
// this machine (B7), in a mount point inside another mount to any path of the
// container, such as that of workshop-init, which a program of the repository would
// replace (B12). Checked paths are pinned in all workers that may write there, so
// that none can put a link there afterwards.
func (r *run) checkWays(ctx context.Context, service string, mounts []mount.Mount) error {
	if r.p.Compiled.Roles[service] != compose.RoleWorker {
		return nil
	}
	if info, err := r.e.Info(ctx); err != nil || !info.Local {
		return err // the engine is remote: nothing of this machine is bound
	}
	var programs []string
	if f := r.p.Compiled.Facts; f != nil {
		programs = f.HostPaths
	}
	return ways(mounts, programs)
}

// mountsOf returns the mounts that a container was created with. podman shows those that
// it made, with its tmpfs apart.
func mountsOf(c *container.InspectResponse) []mount.Mount {
	if len(c.HostConfig.Mounts) > 0 {
		return c.HostConfig.Mounts
	}
	var out []mount.Mount
	for _, m := range c.Mounts {
		out = append(out, mount.Mount{Type: m.Type, Source: m.Source, Target: m.Destination, ReadOnly: !m.RW})
	}
	for _, target := range sortedKeys(c.HostConfig.Tmpfs) {
		out = append(out, mount.Mount{Type: mount.TypeTmpfs, Target: target})
	}
	return out
}

// ways checks mounts; programs are the paths that `image: host` mounts.
func ways(mounts []mount.Mount, programs []string) error {
	sources := map[string]string{} // by mount target; "": no worker writes there
	for _, m := range mounts {
		if sources[m.Target] = ""; m.Type == mount.TypeBind {
			sources[m.Target] = m.Source
		}
	}
	for _, m := range mounts {
		if m.Type == mount.TypeBind && !ours(m, programs) {
			if err := onWay("the source", m.Target, "/", m.Source); err != nil {
				return err
			}
		}
		for dir := path.Dir(m.Target); dir != "/" && dir != "."; dir = path.Dir(dir) {
			source, ok := sources[dir]
			if !ok {
				continue
			}
			if source != "" {
				if err := onWay("the mount point", m.Target, source, strings.TrimPrefix(m.Target, dir)); err != nil {
					return err
				}
			}
			break
		}
	}
	return nil
}

// accounts are files of /etc that the compile or the engine's dialect mounts.
var accounts = []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf"}

// ours reports whether a bind isn't one of workshop.yaml: programs of `image: host`,
// at their own paths, or accounts, secrets and the dial-in directory, in a directory
// of the user to which no worker writes.
func ours(m mount.Mount, programs []string) bool {
	return m.ReadOnly && (m.Source == m.Target && slices.Contains(programs, m.Source) || m.Target == compose.DialInDir || path.Dir(m.Target) == compose.SecretsDir || slices.Contains(accounts, m.Target))
}

// onWay refuses a path with a symbolic link.
func onWay(what, target, dir, rel string) error {
	link, err := hostlink.Below(dir, rel)
	switch {
	case err != nil:
		return fmt.Errorf("%s of %s: %w: it existed when it was checked; run `workshop up` again", what, target, errors.Unwrap(err))
	case link != "":
		return &engine.RefusedError{
			Promise: "B7", Reason: fmt.Sprintf("%s of %s leads through %s, which is a symbolic link", what, target, filepath.Clean(link)),
			Do: "find out what put it there, remove it, and run `workshop up` again",
		}
	}
	return nil
}
