package namespace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/lib/cgroup"
)

// maxLooks bounds the projects that are read at a time.
const maxLooks = 8

// List reads the state files, which a supervisor that lives keeps up to date, and asks
// no supervisor.
func (e *Engine) List(ctx context.Context) ([]engine.Listed, error) {
	projects, err := os.ReadDir(e.opts.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make([]listed, len(projects))
	failed := make([]error, len(projects))
	var g errgroup.Group
	g.SetLimit(maxLooks)
	for i, p := range projects {
		if !p.IsDir() || !validName(p.Name()) {
			continue
		}
		g.Go(func() error {
			all[i], failed[i] = e.listOne(p.Name())
			return nil
		})
	}
	_ = g.Wait() // what can't be read doesn't hide the rest
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var out []engine.Listed
	memory := map[string]map[string]int64{} // of all groups, by their directories
	for i := range all {
		l := &all[i]
		if l.Project == "" {
			continue
		}
		l.Memory = -1
		if l.runs && l.prefix != "" {
			dirs := strings.Join(l.dirs, "\x00")
			if _, done := memory[dirs]; !done {
				memory[dirs] = cgroup.MemoryUsages(l.dirs)
			}
			for name, n := range memory[dirs] {
				if strings.HasPrefix(name, l.prefix) {
					l.Memory = max(l.Memory, 0) + n
				}
			}
		}
		out = append(out, l.Listed)
	}
	return out, errors.Join(failed...)
}

// listed is a project with where its control groups are.
type listed struct {
	engine.Listed
	runs   bool
	prefix string
	dirs   []string
}

func (e *Engine) listOne(project string) (l listed, err error) {
	dir := e.dir(project)
	if l.runs, err = client.Lives(dir); err != nil {
		return l, err
	}
	f, err := client.State(dir)
	if err != nil && !isForm(err) {
		return l, damaged(dir, api.StateName, err)
	}
	if !l.runs {
		endedAll(f.Containers)
	}
	l.Project, l.prefix, l.dirs = project, f.Cgroup, f.CgroupDirs
	rooms := byService(f.Containers)
	for _, s := range f.Containers {
		c := e.observed(project, s, rooms)
		l.Directory = c.Directory
		l.Containers = append(l.Containers, c)
	}
	if len(f.Containers) == 0 {
		kept, err := readObjects(dir)
		if err != nil {
			return l, err
		}
		for _, o := range append(kept.Volumes, kept.Networks...) {
			l.Directory = o.Labels[compose.LabelDirectory]
		}
	}
	return l, nil
}
