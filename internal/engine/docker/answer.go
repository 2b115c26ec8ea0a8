package docker

import (
	"context"
	"errors"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/internal/engine"
)

// answerWithin is how long the engine may take to begin its answer to a question
// about one container. Some of its versions hold a container's lock while they
// start a process in it, and a worker can stop that process: then no question
// about the container is ever answered.
const answerWithin = 4 * time.Second

// answer calls the engine about a container. Where it doesn't answer in time, the
// error is an [*engine.SilentError]. What is read from an answer later has the
// time of ctx.
func answer[T any](ctx context.Context, name string, call func(context.Context) (T, error)) (T, error) {
	within, cancel := context.WithCancelCause(ctx)
	silent := &engine.SilentError{Container: name}
	late := time.AfterFunc(answerWithin, func() { cancel(silent) })
	v, err := call(within)
	late.Stop()
	if err != nil && context.Cause(within) == error(silent) {
		err = silent
	}
	return v, err
}

func isSilent(err error) bool {
	_, ok := errors.AsType[*engine.SilentError](err)
	return ok
}

// pause stops a container's processes.
func (e *Engine) pause(ctx context.Context, id string) error {
	_, err := answer(ctx, id, func(ctx context.Context) (struct{}, error) { return struct{}{}, e.cli.ContainerPause(ctx, id) })
	return err
}

// inspect asks for a container by its ID or name; the name is for messages.
func (e *Engine) inspect(ctx context.Context, id, name string) (container.InspectResponse, error) {
	return answer(ctx, name, func(ctx context.Context) (container.InspectResponse, error) { return e.cli.ContainerInspect(ctx, id) })
}
