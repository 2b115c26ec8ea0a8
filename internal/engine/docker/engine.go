package docker

import (
	"context"
	"sync"

	"github.com/docker/docker/client"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/initimage"
)

// MinAPIVersion is the oldest supported engine API: Docker 20.10.
const MinAPIVersion = "1.41"

// Options selects the engine. The zero value selects the docker command's.
type Options struct {
	// Host is a DOCKER_HOST value; empty: the environment's, else the
	// current context's.
	Host string
	// Context names a docker context; Host has precedence.
	Context string
	// Flavour is the one that must answer; empty: any. It also decides where the endpoint
	// is looked for.
	Flavour engine.Flavour
	// Lookup returns variables of the environment; nil: none is set.
	Lookup func(string) (string, bool)
	// ApproveBuild is called for every build of a plan before its first step. An
	// error refuses the plan. Nil refuses every build.
	ApproveBuild func(context.Context, Build) error
	// WithoutLimits accepts that the engine can't enforce limits of memory, cpu and pids
	// (B5). Those that it can enforce are still enforced.
	WithoutLimits bool
	// CgroupV1 goes on where podman shows workers the names of their cgroups (B6).
	CgroupV1 bool
	// Compared notes what was compared with what was asked for.
	Compared engine.Compared
	// Init is the set of workshop-init programs; nil: the embedded one.
	Init *initimage.Set
}

// Engine is a Docker Engine. It is safe for use by several goroutines.
type Engine struct {
	cli      *client.Client
	endpoint endpoint
	opts     Options
	init     *initimage.Set

	info func(context.Context) (engine.Info, error)
	mu   sync.Mutex

	negotiate sync.Once // of the API version, see Ping
	pinged    error     // by it

	background sync.WaitGroup // removals of helpers
}

var _ engine.Engine = (*Engine)(nil)

// New finds the engine without connecting to it. Errors are about settings, such as
// a context that doesn't exist.
func New(_ context.Context, o Options) (*Engine, error) {
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	ep, err := findEndpoint(o)
	if err != nil {
		return nil, err
	}
	cli, err := client.NewClientWithOpts(ep.opts...)
	if err != nil {
		return nil, &UnreachableError{Endpoint: ep.host, Flavour: o.Flavour, Err: err}
	}
	ep.http.Transport = &bounded{ep.http.Transport, boundOf} // around what the client put there
	e := &Engine{cli: cli, endpoint: ep, opts: o, init: o.Init}
	if e.init == nil {
		e.init = initimage.Default()
	}
	return e, nil
}

// Close waits for background work and closes the connections.
func (e *Engine) Close() error {
	e.settle()
	return e.cli.Close()
}

// arch returns the engine's architecture as GOARCH.
func (e *Engine) arch(ctx context.Context) (string, error) {
	info, err := e.Info(ctx)
	return info.Arch, err
}
