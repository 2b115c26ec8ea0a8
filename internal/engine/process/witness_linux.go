package process

import (
	"context"

	"github.com/llmdo/workshop/internal/engine"
)

// Witness returns nothing: there are no containers.
func (e *Engine) Witness(context.Context, string, string, string) (engine.Witness, error) {
	return engine.Witness{}, nil
}

// Crash does nothing: there are no containers.
func (e *Engine) Crash(context.Context, string, string, string) error { return nil }
