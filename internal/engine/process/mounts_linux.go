package process

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/rmtree"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/toolbox/process"
)

// mounts returns a worker's mounts: those of its file, copies and secrets at their
// sources, its own directories in place of memory file systems, and as "/" a
// directory with links to all of them, so that paths relative to the working
// directory mean the same in a shell as in the file tools.
func (e *Engine) mounts(c *compose.Compiled, s types.ServiceConfig, id string, u user) ([]process.Mount, error) {
	data, err := e.data(c.Project.Name)
	if err != nil {
		return nil, err
	}
	own := filepath.Join(data, ownName, id)
	// Links of a previous description are removed; the worker's own directories
	// keep their content.
	view := filepath.Join(own, "view")
	if err := rmtree.Remove(view); err != nil {
		return nil, err
	}
	if err := e.reachedBy(own, u.gid); err != nil {
		return nil, err
	}
	if err := makeReadable(view); err != nil {
		return nil, err
	}
	list := []process.Mount{{Target: "/", Source: view, ReadOnly: true}}
	for i, line := range s.Tmpfs {
		target, _, _ := strings.Cut(line, ":")
		dir := filepath.Join(own, "memory-"+strconv.Itoa(i))
		if err := ownDirectory(dir, u); err != nil {
			return nil, err
		}
		list = append(list, process.Mount{Target: path.Clean(target), Source: dir})
	}
	for _, v := range s.Volumes {
		m := process.Mount{Target: path.Clean(v.Target), ReadOnly: v.ReadOnly}
		switch _, isCopy := c.Copies[v.Source]; {
		case v.Type == types.VolumeTypeVolume && isCopy:
			m.Source = filepath.Join(data, volumesName, engine.VolumeName(c.Project, v.Source))
		case v.Type != types.VolumeTypeBind || ofContainer(c, v):
			continue
		default:
			m.Source = engine.HostPath(c, v.Source)
		}
		list = append(list, m)
	}
	for i := range list {
		real, err := filepath.EvalSymlinks(list[i].Source)
		if err != nil {
			return nil, fmt.Errorf("the source of %s: %w", list[i].Target, err)
		}
		if err := engine.CheckMoved(c, list[i].Target, list[i].Source, real); err != nil {
			return nil, err
		}
		if err := engine.CheckPath("the source of "+list[i].Target, real); err != nil {
			return nil, err
		}
		list[i].Source = real
	}
	return list, link(view, workdirOf(s), list)
}

// ofContainer reports whether a bind is made by the compile for containers alone:
// programs of `image: host`, accounts, the dial-in directory.
func ofContainer(c *compose.Compiled, v types.ServiceVolumeConfig) bool {
	switch v.Target {
	case compose.DialInDir, compose.InitDir, "/etc/passwd", "/etc/group":
		return true
	}
	return v.Source == v.Target && c.Facts != nil && slices.Contains(c.Facts.HostPaths, v.Source)
}

// link makes the worker's root: a link for each mount that isn't in another one, and
// the working directory.
func link(view, workdir string, mounts []process.Mount) error {
	inOther := func(p string) bool {
		return slices.ContainsFunc(mounts, func(m process.Mount) bool { return m.Target != "/" && m.Target != p && subpath.Within(p, m.Target) })
	}
	for _, m := range mounts[1:] {
		if inOther(m.Target) {
			continue
		}
		at := filepath.Join(view, m.Target)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(m.Source, at); err != nil {
			return err
		}
	}
	at := filepath.Join(view, workdir)
	if _, err := os.Stat(at); err == nil || inOther(workdir) {
		return nil
	}
	return os.MkdirAll(at, 0o755)
}

// makeReadable makes a directory that everybody can read.
func makeReadable(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755) // regardless of the umask
}

// ownDirectory makes a directory for the worker's user alone.
func ownDirectory(dir string, u user) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(dir, u.uid, u.gid)
}
