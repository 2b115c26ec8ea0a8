package process

import (
	"context"
	"fmt"

	"github.com/llmdo/workshop/internal/engine"
)

// Leftovers returns none: the program is the namespace engine's, too.
func (e *Engine) Leftovers(context.Context) ([]engine.Leftover, error) { return nil, nil }

// RemoveLeftover refuses: there is none.
func (e *Engine) RemoveLeftover(_ context.Context, l engine.Leftover) error {
	return fmt.Errorf("%s %s is not one of this engine", l.Kind, l.ID)
}
