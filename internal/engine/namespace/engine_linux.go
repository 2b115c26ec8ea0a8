package namespace

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/llmdo/workshop/internal/engine"
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

	// The limits that can be enforced in this process's control groups, and by the
	// project's supervisor. The error says what to do.
	machineLimits, limits func() (cgroup.Limits, error)

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
	e.machineLimits = findLimits
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

// findLimits returns the limits that can be enforced. The error is a
// *cgroup.Unavailable if some can't.
func findLimits() (cgroup.Limits, error) {
	p, err := cgroup.Find()
	if err != nil {
		return cgroup.Limits{}, err
	}
	return p.Can(), p.Require()
}

// projectLimits returns the limits that the project's supervisor can enforce, which
// may be in other control groups than ours; without one, those of a new one.
func (e *Engine) projectLimits() (cgroup.Limits, error) {
	can, err := e.machineLimits()
	if e.opts.Project == "" {
		return can, err
	}
	dir := e.dir(e.opts.Project)
	if lives, e := client.Lives(dir); e != nil || !lives {
		return can, err
	}
	f, failed := client.State(dir)
	switch {
	case failed != nil: // the next reader reports it
		return can, err
	case f.Limits:
		return cgroup.Limits{Memory: true, Swap: true, CPU: true, PIDs: true}, nil
	case err != nil || len(f.Containers) == 0:
		// There is no state yet: another command may have just started it. That one
		// checks the limits itself before it starts anything.
		return can, err
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
