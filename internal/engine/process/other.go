//go:build !linux

package process

import (
	"context"

	"github.com/llmdo/workshop/internal/engine"
)

// New returns an error: tools are run by a Linux program.
func New(_ context.Context, o Options) (engine.Engine, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return nil, &engine.RefusedError{Reason: "process mode needs a Linux machine", Do: "use --engine docker"}
}
