package cli

import (
	"context"
	"errors"

	"github.com/llmdo/workshop/internal/engine"
)

// EngineFactory connects to the engine of that name; the empty name means the
// default.
type EngineFactory func(ctx context.Context, name string, o EngineOptions) (engine.Engine, error)

// EngineOptions is what an engine needs of the command line.
type EngineOptions struct {
	// Lookup reads the environment (DOCKER_HOST and friends).
	Lookup func(string) (string, bool)
	// ApproveBuild is asked before an image is built; nil refuses every build.
	ApproveBuild func(context.Context, BuildRequest) error
}

// connect gives the engine. The caller closes it.
func (a *app) connect(ctx context.Context, approve func(context.Context, BuildRequest) error) (engine.Engine, error) {
	e, err := a.Engine(ctx, a.set.engine, EngineOptions{Lookup: a.Lookup, ApproveBuild: approve})
	if err != nil {
		return nil, engineError(err)
	}
	return e, nil
}

// engineError gives an engine's error its exit code and hints: its own where
// it has one (ExitCode), else 5.
func engineError(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{code: codeEngine, err: err}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		f.code = coded.ExitCode()
	}
	return engineHints(f)
}
