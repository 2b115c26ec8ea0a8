package cli

import (
	"context"
	"errors"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/promise"
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
	// StateDir and CacheDir are the user's for this program; empty where there is
	// no home directory.
	StateDir, CacheDir string
	// Version is this program's.
	Version string
	// Project is the one that the command is about; empty: none.
	Project string
	// WithoutLimits goes on where no limits can be enforced (B5).
	WithoutLimits bool
}

// connect gives the engine that the command uses, see [program.choose]. The caller
// closes it.
func (a *program) connect(ctx context.Context, approve func(context.Context, BuildRequest) error) (engine.Engine, error) {
	o := EngineOptions{
		Lookup: a.Lookup, ApproveBuild: approve, StateDir: a.stateDir(), CacheDir: a.cacheDir(),
		Version: linkedVersion, Project: a.on.project, WithoutLimits: a.set.withoutLimits,
	}
	chosen, e, err := a.choose(ctx, o)
	if err != nil {
		return nil, engineError(err)
	}
	a.chosen = chosen
	if chosen.name == promise.Process {
		a.sayProcess()
	}
	if e == nil {
		if e, err = a.Engine(ctx, chosen.name, o); err != nil {
			return nil, engineError(err)
		}
	}
	return e, nil
}

// engineError gives an engine's error its exit code and hints: its own where
// it has one (ExitCode), else 5.
func engineError(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*app.Failure](err); ok {
		return f
	}
	f := &app.Failure{Code: app.CodeEngine, Err: err}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		f.Code = coded.ExitCode()
	}
	return engineHints(f)
}
