package docker

import (
	"context"
	"fmt"
	"io"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/internal/engine"
)

// Logs writes the logs of services, of all if none is named.
func (e *Engine) Logs(ctx context.Context, project string, services []string, o engine.LogsOptions) error {
	seen, err := e.Observe(ctx, project)
	if err != nil {
		return err
	}
	return engine.WriteLogs(ctx, seen, services, o, func(ctx context.Context, c engine.Container, stdout, stderr io.Writer) error {
		return e.logsOf(ctx, c, o, stdout, stderr)
	})
}

func (e *Engine) logsOf(ctx context.Context, c engine.Container, o engine.LogsOptions, stdout, stderr io.Writer) error {
	info, err := e.inspect(ctx, c.ID, c.Name)
	if err != nil {
		return e.explain(err)
	}
	r, err := answer(ctx, c.Name, func(ctx context.Context) (io.ReadCloser, error) {
		return e.cli.ContainerLogs(ctx, c.ID, container.LogsOptions{
			ShowStdout: true, ShowStderr: true, Follow: o.Follow, Timestamps: o.Timestamps, Tail: o.Tail, Since: o.Since,
		})
	})
	if err != nil {
		return fmt.Errorf("logs of %s: %w", c.Service, e.explain(err))
	}
	defer r.Close()
	if info.Config.Tty {
		_, err = io.Copy(stdout, r)
	} else {
		err = copyFrames(stdout, stderr, r, o.Timestamps)
	}
	return err
}
