package app

import (
	"context"

	"github.com/llmdo/workshop/internal/engine"
)

// Logs writes what the named containers wrote, or all; asked as in [Running.Look].
func (env *Env) Logs(ctx context.Context, names []string, asked bool, o engine.LogsOptions) error {
	e, _, err := env.observeServices(ctx, names, asked)
	if err != nil {
		return err
	}
	defer e.Close()
	err = e.Logs(ctx, e.Name, names, o)
	if o.Follow && ctx.Err() != nil {
		return Exit(CodeInterrupted)
	}
	return EngineError(err)
}
