//go:build !linux

package namespace

import (
	"context"

	"github.com/llmdo/workshop/internal/engine"
)

// New returns an error: namespaces require Linux.
func New(_ context.Context, o Options) (engine.Engine, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return nil, &engine.RefusedError{Reason: "the namespace engine needs a Linux machine", Do: "use --engine docker"}
}
