package app

import (
	"context"
	"slices"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/promise"
)

// Running is a project with the engine that it is on, or is to be.
type Running struct {
	engine.Engine
	ProjectRef
	Chosen Choice
	env    *Env
}

// OneOff reports whether it is a run.
func (r *Running) OneOff() bool { return r.run != nil }

// Connect returns the engine that is used for a project, see [Env.choose]. The
// caller closes it. approve is asked before an image is built; nil refuses every
// build.
func (env *Env) Connect(ctx context.Context, t ProjectRef, approve func(context.Context, BuildRequest) error) (*Running, error) {
	o := env.optionsFor(t)
	o.ApproveBuild = approve
	chosen, e, err := env.choose(ctx, t, o)
	if err != nil {
		return nil, EngineError(err)
	}
	if chosen.Name == promise.Process {
		env.sayProcess()
	}
	return env.connectChosen(ctx, t, chosen, e, o)
}

// connectBeside is Connect to the engine of another project, by the same endpoint.
func (env *Env) connectBeside(ctx context.Context, t ProjectRef, r *Running) (*Running, error) {
	i, err := r.Info(ctx)
	if err != nil {
		return nil, EngineError(err)
	}
	chosen := r.Chosen
	chosen.place = upOn(i)
	return env.connectChosen(ctx, t, chosen, nil, env.optionsFor(t))
}

// optionsFor are those for the engine of a project.
func (env *Env) optionsFor(t ProjectRef) EngineOptions {
	o := env.engineOptions()
	o.Project, o.WithoutLimits, o.Podman, o.Attached = t.Name, env.Settings.WithoutLimits, env.Settings.Podman, t.run != nil
	o.Say = func(text string) { env.say("%s", text) }
	return o
}

// connectChosen connects to an engine that was chosen, if e isn't it already.
func (env *Env) connectChosen(ctx context.Context, t ProjectRef, chosen Choice, e engine.Engine, o EngineOptions) (_ *Running, err error) {
	if p := chosen.place; p != nil && p.Endpoint != "" {
		if e, err = env.connectTo(ctx, t, p, o); err != nil {
			return nil, err
		}
	}
	if e == nil {
		if e, err = env.Engine(ctx, chosen.Name, o); err != nil {
			return nil, EngineError(err)
		}
	}
	return &Running{Engine: e, ProjectRef: t, Chosen: chosen, env: env}, nil
}

// Look observes the project. One of another directory that has the same name is
// refused, unless the caller named it and only something is shown: asked.
func (r *Running) Look(ctx context.Context, asked bool) (engine.Observed, error) {
	seen, err := r.Observe(ctx, r.Name)
	if err == nil && !asked {
		err = engine.CheckDirectory(seen, r.Dir)
	}
	if err == nil && len(seen.Containers) == 0 { // nothing is there: why?
		err = r.env.checkPlace(ctx, r)
	}
	return seen, r.env.foreignError(r.ProjectRef, err)
}

// Observe connects and looks at the project; asked as in [Running.Look]. The
// caller closes it.
func (env *Env) Observe(ctx context.Context, t ProjectRef, asked bool) (*Running, engine.Observed, error) {
	r, err := env.Connect(ctx, t, nil)
	if err != nil {
		return nil, engine.Observed{}, err
	}
	seen, err := r.Look(ctx, asked)
	if err != nil {
		r.Close()
		return nil, seen, err
	}
	return r, seen, nil
}

// observeServices is Observe for a project that has the named containers, of the roles
// that are known; none: of any.
func (env *Env) observeServices(ctx context.Context, names []string, asked bool, known ...compose.Role) (*Running, engine.Observed, error) {
	t, err := env.Find(ctx)
	if err != nil {
		return nil, engine.Observed{}, err
	}
	r, seen, err := env.Observe(ctx, t, asked)
	if err != nil {
		return nil, seen, err
	}
	if err := env.services(ctx, t, seen, names, known...); err != nil {
		r.Close()
		return nil, seen, err
	}
	return r, seen, nil
}

// Stopped names what a worker's network needs and doesn't run: its room, the
// guard. Without a name it is about all workers.
func Stopped(seen engine.Observed, worker string) []string {
	guard, needed := false, false
	for _, c := range seen.Containers {
		guard = guard || c.Role == compose.RoleGuard.String() && c.State == "running"
	}
	var out []string
	for _, c := range seen.Containers {
		if c.NetworkOf == "" || worker != "" && c.Service != worker {
			continue
		}
		needed = true
		if roomOf(seen, c) == roomStopped && !slices.Contains(out, "room") {
			out = append(out, "room")
		}
	}
	if needed && !guard {
		out = append(out, "guard")
	}
	return out
}

// Stale names the workers that run in a network namespace which their room has
// left, because the room was restarted: they have no network. With a name it is
// about that worker alone.
func Stale(seen engine.Observed, worker string) []string {
	var out []string
	for _, c := range seen.Containers {
		if c.NetworkOf == "" || c.State != "running" || worker != "" && c.Service != worker {
			continue
		}
		if roomOf(seen, c) == roomRestarted {
			out = append(out, c.Service)
		}
	}
	return out
}

type roomState int

const (
	roomRuns roomState = iota
	roomStopped
	roomRestarted
)

// roomOf finds out what became of a container's room since the container started. A
// restarted room has another ID on the namespace engine, and another start on Docker.
func roomOf(seen engine.Observed, c engine.Container) roomState {
	state := roomStopped
	for _, k := range seen.Containers {
		switch {
		case k.ID == c.NetworkOf && k.State != "running":
			return roomStopped
		case k.ID == c.NetworkOf && c.Started.Before(k.Started):
			return roomRestarted
		case k.ID == c.NetworkOf:
			return roomRuns
		case k.Role == compose.RoleRoom.String() && k.State == "running":
			state = roomRestarted
		}
	}
	return state
}
