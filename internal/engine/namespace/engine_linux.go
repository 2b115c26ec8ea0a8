package namespace

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/image"
	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/lib/cgroup"
)

// Engine runs projects in namespaces of this machine. It is safe for use by several
// goroutines.
type Engine struct {
	opts     Options
	init     *initimage.Set
	rootless bool

	// groups are those of a new supervisor, limits what the project's one can enforce.
	// The error says what to do.
	groups func() groups
	limits func() (cgroup.Limits, error)

	store func() (*image.Store, error)
	// netfilter returns what is known of the kernel's netfilter.
	netfilter func() netfilter

	objects sync.Mutex // objects.json
	silent  sync.Map   // projects whose supervisor didn't respond
	begun   sync.Map   // project → closed once the supervisor that Begin starts is there
	leashes sync.Map   // files that stay open as long as this process lives, see Options.Attached
}

var _ engine.Engine = (*Engine)(nil)

// New returns the engine; it starts and checks nothing.
func New(_ context.Context, o Options) (*Engine, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	e := &Engine{opts: o, init: o.Init, rootless: os.Geteuid() != 0}
	if e.init == nil {
		e.init = initimage.Default()
	}
	e.groups = sync.OnceValue(e.findGroups)
	e.limits = sync.OnceValues(e.projectLimits)
	e.netfilter = sync.OnceValue(e.lookForNetfilter)
	e.store = sync.OnceValues(func() (*image.Store, error) {
		return image.Open(filepath.Join(o.CacheDir, "images"), image.Options{Lookup: o.Lookup})
	})
	return e, nil
}

// Close does nothing: projects keep running.
func (e *Engine) Close() error { return nil }

// dir returns the directory of a project.
func (e *Engine) dir(project string) string { return filepath.Join(e.opts.StateDir, project) }

// arch is the only architecture that runs here.
const arch = runtime.GOARCH

// projectLimits returns the limits that the project's supervisor can enforce, which
// may be in other control groups than ours; without one, those of a new one.
func (e *Engine) projectLimits() (cgroup.Limits, error) {
	f, has := (*api.File)(nil), false
	if e.opts.Project != "" {
		dir := e.dir(e.opts.Project)
		if lives, err := client.Lives(dir); err == nil && lives {
			f, err = client.State(dir)
			has = err == nil // else the next reader reports it
		}
	}
	if has && f.Limits {
		return cgroup.Limits{Memory: true, Swap: true, CPU: true, PIDs: true}, nil
	}
	// Without containers there is no state yet: another command may have just started
	// it. That one checks the limits itself before it starts anything.
	g := e.groups()
	if !has || g.err != nil || len(f.Containers) == 0 {
		return g.can, g.err
	}
	why := "project " + e.opts.Project + " was brought up without limits"
	return cgroup.Limits{}, &cgroup.Unavailable{
		Missing: []cgroup.Missing{{Limit: cgroup.Memory, Why: why}, {Limit: cgroup.Swap, Why: why}, {Limit: cgroup.CPU, Why: why}, {Limit: cgroup.PIDs, Why: why}},
		Do:      "limits are available now: run `workshop down`, then `workshop up`",
	}
}

// unlimited reports whether containers are created without limits.
func (e *Engine) unlimited() bool {
	_, err := e.limits()
	return e.opts.WithoutLimits && err != nil
}
