package docker

import (
	"context"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// Ping asks the engine for its version, once. The client's first calls must not
// run at once: some read the version without a lock while another negotiates it.
func (e *Engine) Ping(ctx context.Context) error {
	e.negotiate.Do(func() {
		p, err := e.cli.Ping(ctx)
		if e.pinged = err; err == nil {
			e.cli.NegotiateAPIVersionPing(p)
		}
	})
	return e.explain(e.pinged)
}

// Capabilities are those of an engine of containers, which Compose knows.
func (e *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Contained: true, Compose: true}
}

// Check is nil: what this engine can't carry out, translating refuses.
func (e *Engine) Check(context.Context, *compose.Compiled) error { return nil }

// CanLearn is nil: the rules of a room that learns are those of every kernel.
func (e *Engine) CanLearn() error { return nil }

// Tidy does nothing: all that a project has are containers, networks and volumes.
func (e *Engine) Tidy(context.Context, string, string) error { return nil }
