package app

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/llmdo/workshop/compose"
)

// Await waits until the named workers, or all that run, have ended, and tells of each
// end. It returns the exit code of the last one.
func (env *Env) Await(ctx context.Context, names []string, asked bool, ended func(container string, code int)) (int, error) {
	r, seen, err := env.observeServices(ctx, names, asked, compose.RoleWorker)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	type end struct {
		container string
		code      int
	}
	ends := make(chan end)
	g, gctx := errgroup.WithContext(ctx)
	waits := 0
	for _, c := range seen.Containers {
		if len(names) > 0 && !slices.Contains(names, c.Service) || len(names) == 0 && (c.Role != compose.RoleWorker.String() || c.State != "running") || c.Helper || c.OneOff {
			continue
		}
		waits++
		g.Go(func() error {
			code, err := r.Wait(gctx, r.Name, c.Service, r.Dir)
			if err == nil {
				ends <- end{c.Name, code}
			}
			return err
		})
	}
	if waits == 0 {
		return 0, Fail(CodeFailed, "no worker of project %s runs", r.Name).Hint("start it with `workshop up`")
	}
	go func() {
		_ = g.Wait() // asked for below
		close(ends)
	}()
	code := 0
	for e := range ends {
		code = e.code
		ended(e.container, e.code)
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return code, EngineError(g.Wait())
}
