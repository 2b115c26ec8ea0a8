package docker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/internal/engine"
)

// answerWithin is how long the engine may take to begin a response about one
// container. Some of its versions hold a container's lock while they start a process
// in it, and a worker can stop that process: then they never respond to a request
// about the container.
const answerWithin = 4 * time.Second

// answer calls the engine about a container. If the response doesn't begin in time,
// the error is an [*engine.SilentError]. Reading the response is bounded by ctx
// alone.
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

// pause freezes a container's processes.
func (e *Engine) pause(ctx context.Context, id string) error {
	_, err := answer(ctx, id, func(ctx context.Context) (struct{}, error) { return struct{}{}, e.cli.ContainerPause(ctx, id) })
	return err
}

// inspect returns the state of a container by its ID; name is for messages.
func (e *Engine) inspect(ctx context.Context, id, name string) (container.InspectResponse, error) {
	c, err := answer(ctx, name, func(ctx context.Context) (container.InspectResponse, error) { return e.cli.ContainerInspect(ctx, id) })
	if err == nil && (c.ContainerJSONBase == nil || c.State == nil || c.HostConfig == nil || c.Config == nil) {
		err = &answerError{"its inspection of a container has no state or no configuration"}
	}
	if err == nil {
		c.HostConfig.Ulimits = present(c.HostConfig.Ulimits)
	}
	return c, err
}

// present leaves out what a list of the engine has null for.
func present[T any](list []*T) []*T {
	return slices.DeleteFunc(list, func(v *T) bool { return v == nil })
}
