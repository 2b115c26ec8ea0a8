package docker

import (
	"context"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// Times after which an engine counts as blocked by a worker: removing a container
// takes milliseconds, stopping one ten seconds, after which the engine kills.
const (
	removeAfter  = 2 * time.Second
	stopAfter    = 15 * time.Second
	removeWithin = time.Minute // without a dial-in directory
)

// endByDialIn ends a worker by its dial-in socket, unless done is called first. It is
// for an engine that holds the container's lock while it starts a process that the
// worker has stopped: it can't kill the container, but recovers once that has ended.
func (e *Engine) endByDialIn(ctx context.Context, id, project, service string, after time.Duration) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
			return
		case <-time.After(after):
		}
		if dir := e.dialInByList(ctx, id, project, service); dir != "" {
			if takeBack, err := dialin.Finish(dir); err == nil {
				<-ctx.Done()
				takeBack()
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// dialInByList finds a worker's dial-in directory in the list of containers, for
// which the engine needs no lock; "": there is none on this machine.
func (e *Engine) dialInByList(ctx context.Context, id, project, service string) string {
	if e.endpoint.socket() == "" {
		return ""
	}
	list, err := e.cli.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("id", id))})
	if err != nil || len(list) != 1 || list[0].ID != id || !engine.OurContainer(list[0].Labels) {
		return ""
	}
	var w worker
	for _, m := range list[0].Mounts {
		w.mount(project, service, string(m.Type), m.Source, m.Destination, m.RW)
	}
	return w.dialIn
}
