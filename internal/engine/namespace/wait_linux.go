package namespace

import (
	"context"
	"errors"
	"fmt"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// Wait asks the supervisor. One that ends during it has ended its services.
func (e *Engine) Wait(ctx context.Context, project, service, dir string) (int, error) {
	s, err := e.one(ctx, project, service, dir)
	if err != nil {
		return 0, err
	}
	switch s.State {
	case api.Exited:
		return s.ExitCode, nil
	case api.Created:
		return 0, &engine.NotRunningError{Project: project, Services: []string{service}, State: string(s.State)}
	}
	c, silent, err := e.alive(ctx, project)
	switch {
	case err != nil:
		return 0, err
	case silent:
		return 0, &engine.SilentError{Container: s.Container.Name}
	case c == nil:
		return killed, nil
	}
	code, err := c.Wait(ctx, service)
	told, said := errors.AsType[*api.Error](err)
	switch {
	case said && told.Code == api.CodeUnknown:
		return 0, &engine.NotRunningError{Project: project, Services: []string{service}}
	case said && told.Code == api.CodeInvalid:
		return 0, fmt.Errorf("the supervisor of project %s is of an older workshop, which can't wait: `workshop up` replaces it", project)
	case err != nil && ctx.Err() == nil && e.hasEnded(ctx, project, err):
		return killed, nil
	}
	return code, err
}
