package app

import (
	"context"

	"github.com/llmdo/workshop/internal/guard/events"
)

// What a program of one's own does with the network policy of a workshop that it has
// opened. The file is read anew: it may have changed since. Each call has an Env of its
// own, which calls of tools don't see.

func (h *Tools) own() *Env {
	env := h.asWas
	return &env
}

// ViewPolicy is [Env.ViewPolicy]; the problems of a file are in the error.
func (h *Tools) ViewPolicy(ctx context.Context, worker string) (*PolicyView, error) {
	env := h.own()
	if _, err := env.quietCompile(ctx); err != nil {
		return nil, err
	}
	return env.ViewPolicy(ctx, worker)
}

// ChangeLive is [Env.ChangeLive] for hosts as the command line takes them.
func (h *Tools) ChangeLive(ctx context.Context, o RuleChange, hosts []string) (*LiveChange, error) {
	if len(hosts) == 0 {
		return nil, Fail(CodeUsage, "no host is named")
	}
	if err := o.Parse(hosts); err != nil {
		return nil, err
	}
	return h.own().ChangeLive(ctx, o)
}

// Reload is [Env.Reload]; the problems of a file are in the error.
func (h *Tools) Reload(ctx context.Context, reset bool) (*Reloaded, error) {
	env := h.own()
	if _, err := env.quietCompile(ctx); err != nil && !reset { // which drops what is live, whatever the file says
		return nil, err
	}
	return env.Reload(ctx, reset)
}

// GuardEvents reads the guard's events, each as a line of JSON, and goes on until the
// context is done if follow is set.
func (h *Tools) GuardEvents(ctx context.Context, l GuardLog, follow bool, each func(line []byte) error) error {
	env := h.own()
	t, err := env.Find(ctx)
	if err != nil {
		return err
	}
	e, _, err := env.ObserveGuard(ctx, t, l.Worker, env.Settings.Project != "")
	if err != nil {
		return err
	}
	defer e.Close()
	l.Each = func(raw []byte, _ events.Line) error { return each(raw) }
	if follow {
		err = l.Follow(ctx, e)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	} else {
		_, err = l.Read(ctx, e)
	}
	return EngineError(err)
}
