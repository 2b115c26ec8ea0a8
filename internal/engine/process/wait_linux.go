package process

import (
	"context"
	"errors"
	"time"

	"github.com/llmdo/workshop/internal/engine"
)

// waitPoll is how often the recorded state is read: nothing runs that could tell.
const waitPoll = 500 * time.Millisecond

// Wait returns 0 once the worker isn't up any more: it has no process of its own.
func (e *Engine) Wait(ctx context.Context, project, service, dir string) (int, error) {
	for first := true; ; first = false {
		_, err := e.worker(project, service, dir)
		_, ended := errors.AsType[*engine.NotRunningError](err)
		switch {
		case ended && !first:
			return 0, nil
		case err != nil:
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(waitPoll):
		}
	}
}
