package app

import (
	"context"

	"github.com/llmdo/workshop/internal/engine"
)

// Logs writes what the named containers wrote, or all; asked as in [Running.Look].
func (env *Env) Logs(ctx context.Context, names []string, asked bool, o engine.LogsOptions) error {
	t, err := env.Find(ctx)
	if err != nil {
		return err
	}
	e, seen, err := env.Observe(ctx, t, asked)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := Services(t, seen, names); err != nil {
		return err
	}
	err = e.Logs(ctx, e.Name, names, o)
	if o.Follow && ctx.Err() != nil {
		return Exit(CodeInterrupted)
	}
	return EngineError(err)
}
