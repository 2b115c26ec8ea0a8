package app

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

// EngineError gives an engine's error its exit code and hints: its own where
// it has one (ExitCode), else 5.
func EngineError(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	f := &Failure{Code: CodeEngine, Err: err}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		f.Code = coded.ExitCode()
	}
	return engineHints(f)
}
