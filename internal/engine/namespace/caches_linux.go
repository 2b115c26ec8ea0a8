package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// A cache is the directory caches/PROJECT/NAME in the cache directory of the user,
// where it can be deleted like any cache. Its content, a worker's, is in data, which
// this program only gives to the worker, measures and removes, by descriptors and
// without following links.
const cacheLabels = "labels.json"

func (e *Engine) cachesDir(project string) string {
	return filepath.Join(e.opts.CacheDir, "caches", project)
}

func (e *Engine) cacheDir(project, name string) (string, error) {
	if !validName(name) || !validName(project) {
		return "", fmt.Errorf("cache %q of project %q: the name is not valid as a directory name", name, project)
	}
	return filepath.Join(e.cachesDir(project), name), nil
}

func (e *Engine) isCache(project, name string) bool {
	dir, err := e.cacheDir(project, name)
	return err == nil && exists(dir)
}

// createCache makes the directory of a cache. The labels are last: one without them
// was left by a killed run, and is nobody's.
func (e *Engine) createCache(project string, o engine.Object) error {
	dir, err := e.cacheDir(project, o.Name)
	if err != nil {
		return err
	}
	if err := rmtree.Remove(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, cacheData), 0o700); err != nil {
		return fmt.Errorf("cache %s: %w", o.Name, err)
	}
	b, err := json.Marshal(o.Labels)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, cacheLabels), append(b, '\n'), 0o600)
}

// giveCache makes the content's directory the worker's, for nobody else.
func (e *Engine) giveCache(c *compose.Compiled, key string) error {
	name := engine.VolumeName(c.Project, key)
	dir, err := e.cacheDir(c.Project.Name, name)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer root.Close()
		if !e.rootless {
			uid, gid, ok := numeric(c.Caches[key].User)
			if !ok {
				return fmt.Errorf("cache %s: the user %q is not uid:gid in numbers", name, c.Caches[key].User)
			}
			err = root.Lchown(cacheData, int(uid), int(gid))
		}
		err = errors.Join(err, root.Chmod(cacheData, 0o700)) // its worker may have closed it
	}
	if err != nil {
		return fmt.Errorf("cache %s: %w", name, err)
	}
	return nil
}

func (e *Engine) removeCache(project, name string) error {
	dir, err := e.cacheDir(project, name)
	if err != nil {
		return err
	}
	if err := rmtree.Remove(dir); err != nil {
		return fmt.Errorf("cache %s: %w", name, err)
	}
	_ = os.Remove(e.cachesDir(project)) // the last one
	return nil
}

// maxLabels bounds the size of a cache's labels.
const maxLabels = 64 << 10

// cachesOf lists the caches of a project.
func (e *Engine) cachesOf(project string) ([]engine.Object, error) {
	list, err := os.ReadDir(e.cachesDir(project))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	var out []engine.Object
	for _, d := range list {
		o := engine.Object{Name: d.Name()}
		b, err := boundedfile.Read(filepath.Join(e.cachesDir(project), d.Name(), cacheLabels), maxLabels)
		if err != nil || json.Unmarshal(b, &o.Labels) != nil {
			continue // the next run that needs the name makes it anew
		}
		if c, ok := engine.CacheOf(o); ok && c.Project == project {
			out = append(out, o)
		}
	}
	return out, nil
}

// Caches lists the caches of this user's projects.
func (e *Engine) Caches(ctx context.Context, sizes bool) ([]engine.Cache, error) {
	projects, err := os.ReadDir(filepath.Dir(e.cachesDir("x")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []engine.Cache
	for _, p := range projects {
		objects, err := e.cachesOf(p.Name())
		if err != nil {
			return nil, err
		}
		used, err := e.mountedBy(p.Name())
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			c, _ := engine.CacheOf(o)
			c.InUse = used[o.Name]
			dir := filepath.Join(e.cachesDir(p.Name()), o.Name)
			if info, err := os.Lstat(filepath.Join(dir, cacheLabels)); err == nil {
				c.Created = info.ModTime().Round(time.Second)
			}
			if sizes {
				if n, err := rmtree.Size(ctx, filepath.Join(dir, cacheData)); err == nil {
					c.Size = n
				}
			}
			out = append(out, c)
		}
	}
	return out, ctx.Err()
}

// RemoveCache removes a cache that no container of its project has.
func (e *Engine) RemoveCache(_ context.Context, c engine.Cache) error {
	used, err := e.mountedBy(c.Project)
	if err != nil {
		return err
	}
	if used[c.Name] {
		return engine.Conflict("the cache %s is in use: run `workshop down` first", c.Name)
	}
	return e.removeCache(c.Project, c.Name)
}

// mountedBy returns the names of the caches that containers of a project have.
func (e *Engine) mountedBy(project string) (map[string]bool, error) {
	used := map[string]bool{}
	f, err := client.State(e.dir(project))
	if err != nil {
		return nil, err
	}
	for i := range f.Containers {
		for _, m := range f.Containers[i].Container.Mounts {
			if filepath.Base(m.Source) == cacheData {
				used[filepath.Base(filepath.Dir(m.Source))] = true
			}
		}
	}
	return used, nil
}
