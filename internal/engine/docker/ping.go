package docker

import (
	"context"

	"github.com/llmdo/workshop/internal/engine"
)

// Ping negotiates the API version, once. The client's first calls must not be
// concurrent: some read the version without a lock while another negotiates it.
func (e *Engine) Ping(ctx context.Context) error {
	e.negotiate.Do(func() {
		p, err := e.cli.Ping(ctx)
		if e.pinged = err; err == nil {
			e.cli.NegotiateAPIVersionPing(p)
		}
	})
	return e.explain(e.pinged)
}

// Capabilities returns those of a container engine that Compose supports.
func (e *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Contained: true, Compose: true}
}

// CanLearn returns nil: learning works on every kernel.
func (e *Engine) CanLearn() error { return nil }

// Begin does nothing.
func (e *Engine) Begin(string) {}

// Tidy does nothing: a project has only containers, networks and volumes.
func (e *Engine) Tidy(context.Context, string, string) error { return nil }
