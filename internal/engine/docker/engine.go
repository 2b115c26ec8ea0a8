package docker

import (
	"context"
	"sync"

	"github.com/docker/docker/client"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/initimage"
)

// MinAPIVersion is the oldest engine API that is spoken: Docker 20.10.
const MinAPIVersion = "1.41"

// Options says which engine is used and what is asked of the caller. The zero
// value uses what the docker command would use.
type Options struct {
	// Host is a DOCKER_HOST value; empty: the environment's, else the
	// current context's.
	Host string
	// Context names a docker context; it loses against Host.
	Context string
	// Lookup reads the environment; nil: nothing is set.
	Lookup func(string) (string, bool)
	// ApproveBuild is asked for every build of a plan before its first step.
	// An error refuses the plan. Nil refuses every build.
	ApproveBuild func(context.Context, Build) error
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

// New finds the engine; it does not talk to it yet. Errors are unusable
// settings, such as a context that does not exist.
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
		return nil, &UnreachableError{Endpoint: ep.host, Err: err}
	}
	e := &Engine{cli: cli, endpoint: ep, opts: o, init: o.Init}
	if e.init == nil {
		e.init = initimage.Default()
	}
	return e, nil
}

// Close waits for what is under way and releases the connections.
func (e *Engine) Close() error {
	e.settle()
	return e.cli.Close()
}

// arch returns the engine's architecture as GOARCH.
func (e *Engine) arch(ctx context.Context) (string, error) {
	info, err := e.Info(ctx)
	return info.Arch, err
}
