package process

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// reachedBy makes a directory below DataDir that only sessions of a group can enter
// by path: root's DataDir isn't below a home directory that keeps others out.
func (e *Engine) reachedBy(dir string, gid int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return os.Chmod(dir, 0o700)
	}
	for up := filepath.Dir(dir); subpath.Within(up, e.opts.DataDir); up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o711); err != nil {
			return err
		}
	}
	if err := os.Chown(dir, 0, gid); err != nil {
		return err
	}
	return os.Chmod(dir, 0o750)
}

// groupOf returns the group of the workers that have a copy.
func groupOf(c *compose.Compiled, key string) (gid int, err error) {
	first := ""
	for name, s := range c.Project.Services {
		if c.Roles[name] != compose.RoleWorker {
			continue
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeVolume || v.Source != key {
				continue
			}
			u, err := userOf(name, s.User)
			if err != nil {
				return 0, err
			}
			if first != "" && u.gid != gid {
				return 0, &engine.RefusedError{
					Reason: fmt.Sprintf("%s and %s share a copy (exclude:) but not a group: in process mode everybody on this machine would have to read it", first, name),
					Do:     "set the same group with `user:`, or use --isolation namespace",
				}
			}
			first, gid = name, u.gid
		}
	}
	return gid, nil
}
