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

// Engine carries plans out in namespaces of this machine. It is safe for use by
// several goroutines.
type Engine struct {
	opts     Options
	init     *initimage.Set
	rootless bool

	// What can be enforced: where this process is, and by the project's supervisor.
	// The error says what to do.
	machineLimits, limits func() (cgroup.Limits, error)

	store func() (*image.Store, error)
	// netfilter is what is known of the kernel's.
	netfilter func() netfilter

	objects sync.Mutex // objects.json
	silent  sync.Map   // projects whose supervisor didn't answer
}

var _ engine.Engine = (*Engine)(nil)

// New makes the engine; it starts and looks at nothing yet.
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

// Close releases nothing: what runs, goes on.
func (e *Engine) Close() error { return nil }

// dir is the directory of a project.
func (e *Engine) dir(project string) string { return filepath.Join(e.opts.StateDir, project) }

// arch is the only one that runs here.
const arch = runtime.GOARCH

// findLimits tells which limits can be enforced. The error is a
// *cgroup.Unavailable where some can't.
func findLimits() (cgroup.Limits, error) {
	p, err := cgroup.Find()
	if err != nil {
		return cgroup.Limits{}, err
	}
	return p.Can(), p.Require()
}

// projectLimits is what the project's supervisor can enforce, which was perhaps
// started in other control groups than ours; where none lives, what a new one could.
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
	case failed != nil: // whoever reads it next says so
		return can, err
	case f.Limits:
		return cgroup.Limits{Memory: true, Swap: true, CPU: true, PIDs: true}, nil
	case err != nil || len(f.Containers) == 0:
		// Nothing was brought up yet: it may be another command's, just starting,
		// whose state isn't written. It looks itself before it starts anything.
		return can, err
	}
	why := "project " + e.opts.Project + " was brought up where there were none"
	return cgroup.Limits{}, &cgroup.Unavailable{
		Missing: []cgroup.Missing{{Limit: cgroup.Memory, Why: why}, {Limit: cgroup.Swap, Why: why}, {Limit: cgroup.CPU, Why: why}, {Limit: cgroup.PIDs, Why: why}},
		Do:      "There are limits now: `workshop down`, and then `workshop up`",
	}
}

// unlimited reports whether containers are made without limits.
func (e *Engine) unlimited() bool {
	_, err := e.limits()
	return e.opts.WithoutLimits && err != nil
}
