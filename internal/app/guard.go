package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
)

// controlTime bounds a talk with a guard that is to change something.
const controlTime = 10 * time.Second

// withGuard speaks with the guard of the project. One that isn't there, doesn't
// answer or refuses is a failure that says what to do.
func (env *Env) withGuard(ctx context.Context, r *Running, talk func(*control.Client) error) error {
	within, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	conn, err := r.Control(within, r.Name, r.Dir)
	if err == nil {
		c := control.NewClient(conn)
		err = talk(c)
		c.Close() // all has been said
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case within.Err() != nil:
		return Fail(CodeFailed, "the guard of project %s doesn't answer within %v", r.Name, controlTime).
			Hint("`workshop up` finds out whether it hangs, and stops it then; the next one starts another")
	}
	if refused, ok := errors.AsType[*control.RefusedError](err); ok {
		return Fail(CodeRefused, "%w", refused)
	}
	if missing, ok := errors.AsType[*engine.NotRunningError](err); ok {
		return noGuard(ctx, r, missing)
	}
	return EngineError(err)
}

// noGuard says why there is no guard to speak with.
func noGuard(ctx context.Context, r *Running, missing *engine.NotRunningError) error {
	seen, err := r.Look(ctx, false)
	if err != nil {
		return err
	}
	needed := slices.ContainsFunc(seen.Containers, func(c engine.Container) bool { return c.NetworkOf != "" })
	switch {
	case len(seen.Containers) == 0:
		return notUp(r.ProjectRef)
	case missing.State == "" && !needed:
		return Fail(CodeRefused, "no worker of project %s has a network", r.Name).Hint("%s", networkHint)
	}
	state := "isn't there"
	if missing.State != "" {
		state = "doesn't run (" + missing.State + ")"
	}
	return Fail(CodeFailed, "the guard of project %s %s; its workers reach nothing", r.Name, state).
		Hint("`workshop up` repairs it")
}

// guardState asks the guard what it does now.
func guardState(c *control.Client) (control.State, error) {
	var s control.State
	err := c.Do(control.Request{Op: control.OpState}, &s)
	return s, err
}

// closedRooms says by workers why the guard doesn't serve their rooms.
func closedRooms(s control.State) map[string]string {
	by := map[string]string{}
	for _, r := range s.Rooms {
		for _, w := range r.Workers {
			if r.Closed != "" {
				by[w] = r.Closed
			}
		}
	}
	return by
}

// modesOf returns the modes of the workers that have a room.
func modesOf(s control.State) map[string]firewall.Mode {
	out := map[string]firewall.Mode{}
	for _, r := range s.Rooms {
		for _, w := range r.Workers {
			out[w] = r.Mode
		}
	}
	return out
}

// StaleModesText says of which workers the file has another mode than what runs.
func StaleModesText(workers []string, file string) string {
	return "the network mode of " + WorkersText(workers) + " isn't that of " + file + ": `workshop up` applies it"
}

// SayClosed says which rooms are closed, and what to do.
func (env *Env) SayClosed(s control.State) {
	found := false
	for _, r := range s.Rooms {
		if r.Closed != "" {
			found = true
			env.warn("%s: closed, no network: live denies and spent upload budgets can't be read (%s)", Printable(WorkersText(r.Workers)), Printable(r.Closed))
		}
	}
	if found {
		env.hint("open it without them: `workshop firewall reload`")
	}
}

// UpstreamText says what goes through an upstream.
func UpstreamText(u control.Upstream) string {
	if u.Kind == "proxy" {
		text := "upstream proxy: every connection goes through " + Printable(u.Address)
		if u.Credential != "" {
			text += ", with the credential " + Printable(u.Credential)
		}
		return text
	}
	return "upstream resolver: names are looked up at " + Printable(u.Address)
}
