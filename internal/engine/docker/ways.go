package docker

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/docker/docker/api/types/mount"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/hostlink"
)

// checkWays looks at a worker's mounts immediately before each start, that of a
// restart too. The engine follows links: in a source to any place of this machine
// (B7), in a mount point inside of another mount to any place of the container, such
// as that of workshop-init, whose place in it a program of the repository would take
// (B12). What was looked at is pinned in all workers that may write there, so that
// none can put a link there after this look.
func (r *run) checkWays(ctx context.Context, id, service string) error {
	if r.p.Compiled.Roles[service] != compose.RoleWorker {
		return nil
	}
	if info, err := r.e.Info(ctx); err != nil || !info.Local {
		return err // it is another machine's: nothing of this one is bound
	}
	r.mu.Lock()
	mounts, known := r.mounts[id]
	r.mu.Unlock()
	if !known { // it was made by an earlier run
		c, err := r.e.inspect(ctx, id, service)
		if err != nil {
			return conflict(err)
		}
		mounts = c.HostConfig.Mounts
	}
	return ways(mounts)
}

func ways(mounts []mount.Mount) error {
	sources := map[string]string{} // of what is mounted; "": no worker writes there
	for _, m := range mounts {
		if sources[m.Target] = ""; m.Type == mount.TypeBind {
			sources[m.Target] = m.Source
		}
	}
	for _, m := range mounts {
		if m.Type == mount.TypeBind && !ours(m) {
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

// ours tells of a bind that is not of the file: programs of `image: host`, which
// stand at their own paths, accounts, secrets and the door, in a directory of the
// user's, to which no worker writes.
func ours(m mount.Mount) bool {
	return m.ReadOnly && (m.Source == m.Target || m.Target == compose.DialInDir || path.Dir(m.Target) == compose.SecretsDir || m.Target == "/etc/passwd" || m.Target == "/etc/group")
}

// onWay refuses a way with a link.
func onWay(what, target, dir, rel string) error {
	link, err := hostlink.Below(dir, rel)
	switch {
	case err != nil:
		return fmt.Errorf("%s of %s: %w: it was there when it was looked at; run `workshop up` again", what, target, errors.Unwrap(err))
	case link != "":
		return &engine.RefusedError{
			Promise: "B7", Reason: fmt.Sprintf("%s of %s leads through %s, which is a symbolic link", what, target, filepath.Clean(link)),
			Do: "see what put it there, remove it, and run `workshop up` again",
		}
	}
	return nil
}
