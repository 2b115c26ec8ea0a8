package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// upOn is where a project is up that is on an engine.
func upOn(i engine.Info) *facts.Place {
	return &facts.Place{Engine: i.Kind, Endpoint: i.Endpoint, Context: i.Context, ID: identity(i), Since: time.Now().UTC().Truncate(time.Second)}
}

// identity is what an engine is known by: engines of one machine may have one ID (that of
// Docker 20.10 is the machine's, in /etc/docker/key.json), and podman has none that lasts.
func identity(i engine.Info) string { return strings.TrimSpace(i.ID + " " + i.DataRoot) }

// place returns where a project is recorded to be up; nil: nowhere, or by a version that
// didn't record it.
func (env *Env) place(t ProjectRef) *facts.Place {
	r, err := env.Record(t.Name)
	if t.Name == "" || err != nil || r == nil || r.Down || t.Dir != "" && r.Dir != t.Dir {
		return nil // CompareWatched says what is wrong with a record
	}
	return r.Place
}

// placeText is "docker at unix:///var/run/docker.sock, since 2026-11-28 05:00".
func placeText(p *facts.Place) string {
	text := p.Engine
	if p.Endpoint != "" {
		text += " at " + Printable(p.Endpoint)
	}
	return text + ", since " + p.Since.Local().Format("2006-01-02 15:04")
}

// isUpOn refuses a command about a project with the place where it is up.
func isUpOn(t ProjectRef, p *facts.Place, not string) *Failure {
	return Fail(CodeRefused, "project %s is up on %s; not on %s", t.Name, placeText(p), not)
}

// askedElsewhere refuses an engine that the command line names where the project is up on
// another one: what is asked would not be about what runs.
func (env *Env) askedElsewhere(t ProjectRef, p *facts.Place) error {
	asked := env.Settings.Engine
	if env.engineFrom != FromCaller || names(asked, p) {
		return nil
	}
	return isUpOn(t, p, asked).Hint("leave --engine out, or end it there: `workshop -p %s down`", t.Name)
}

// names reports whether an engine that was asked for can be the one of a place: "docker" is
// whatever answers Docker's API.
func names(asked string, p *facts.Place) bool {
	return asked == "" || asked == string(workshop.IsolationAuto) || asked == p.Engine || asked == promise.Docker && p.Engine == promise.Podman
}

// elsewhere refuses to bring a project up while it is up on another engine than the one
// that the caller, the environment or the current docker context names.
func (env *Env) elsewhere(ctx context.Context, r *Running, p *facts.Place) error {
	end := func(not string) error {
		return isUpOn(r.ProjectRef, p, not).Hint("to move it: `workshop -p %s down`, then again", r.Name)
	}
	asked := env.Settings.Engine
	if !names(asked, p) {
		return end(asked)
	}
	if p.Endpoint == "" {
		return nil
	}
	o := docker.Options{Lookup: env.Lookup}
	if asked == promise.Podman {
		o.Flavour = engine.FlavourPodman
	} else if p.Engine == promise.Podman && asked != promise.Docker && env.Getenv("DOCKER_HOST") == "" {
		return nil // nothing names another one
	}
	host, name, err := docker.Endpoint(o)
	if err != nil {
		return EngineError(err)
	}
	if sameEndpoint(host, p.Endpoint) {
		return nil
	}
	// One engine has several endpoints, such as a forwarded socket.
	if e, err := env.engineAt(ctx, facts.Place{Engine: p.Engine, Endpoint: host, Context: name}); err == nil {
		defer e.Close()
		if i, err := e.Info(ctx); err == nil && i.ID != "" && identity(i) == p.ID {
			return nil
		}
	}
	return end(p.Engine + " at " + Printable(host))
}

// sameEndpoint compares addresses; paths of sockets by what they lead to.
func sameEndpoint(a, b string) bool {
	real := func(host string) string {
		path, ok := strings.CutPrefix(host, "unix://")
		if !ok {
			return host
		}
		if to, err := filepath.EvalSymlinks(path); err == nil {
			path = to
		}
		return "unix://" + filepath.Clean(path)
	}
	return real(a) == real(b)
}

// placeTime bounds how long the recorded engine may take to answer.
const placeTime = 10 * time.Second

// connectTo connects to the engine on which the project is recorded to be up.
func (env *Env) connectTo(ctx context.Context, t ProjectRef, p *facts.Place, o EngineOptions) (engine.Engine, error) {
	o.Endpoint, o.Context = p.Endpoint, p.Context
	e, err := env.Engine(ctx, p.Engine, o)
	if err == nil {
		within, cancel := context.WithTimeout(ctx, placeTime)
		if err = e.Ping(within); err != nil && within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("no answer within %v", placeTime)
		}
		cancel()
		if err == nil {
			return e, nil
		}
		e.Close()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f := Fail(CodeRefused, "project %s is up on %s, which doesn't answer: %w", t.Name, placeText(p), reason(err))
	if u, ok := errors.AsType[*docker.UnreachableError](err); ok && u.Hint != "" {
		f.Hint("%s", u.Hint)
	}
	return nil, f.Hint("if that engine is gone for good: `workshop -p %s down --forget`", t.Name)
}

// reason is an unreachable engine's without the endpoint, which was said.
func reason(err error) error {
	if u, ok := errors.AsType[*docker.UnreachableError](err); ok && u.Err != nil {
		return u.Err
	}
	return err
}

// checkPlace refuses a project that is recorded to be up on an engine in whose place
// another one answers.
func (env *Env) checkPlace(ctx context.Context, r *Running) error {
	p := r.Chosen.place
	if p == nil {
		return nil
	}
	i, err := r.Info(ctx)
	if err != nil {
		return EngineError(err)
	}
	if p.Is(i.Kind, identity(i)) {
		return nil
	}
	return Fail(CodeRefused, "project %s is up on %s; another engine (%s %s) answers there now", r.Name, placeText(p), i.Kind, i.Version).
		Hint("start the one that it is on; if that is gone for good: `workshop -p %s down --forget`", r.Name)
}

// Forget forgets a project whose engine doesn't answer, or is another one now. Nothing of
// it is removed there.
func (env *Env) Forget(ctx context.Context) error {
	t, err := env.Find(ctx)
	if err != nil {
		return err
	}
	if err := env.CheckDirectory(ctx, t); err != nil {
		return err
	}
	ch, err := env.Change(ctx, t.Name)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	p := env.place(t)
	if p == nil {
		return Fail(CodeFailed, "project %s is not recorded to be up anywhere", t.Name)
	}
	if e, err := env.Connect(ctx, t, nil); err == nil {
		defer e.Close()
		if env.checkPlace(ctx, e) == nil {
			return Fail(CodeRefused, "project %s is up on %s, which answers: nothing was forgotten", t.Name, placeText(p)).Hint("remove it: `workshop -p %s down`", t.Name)
		}
	} else if CodeOf(err) != CodeRefused {
		return err
	}
	env.warn("what project %s has on %s is not removed: its containers and volumes stay, and run if that engine comes back", t.Name, placeText(p))
	changed := env.CompareWatched(ctx, t.Name, engine.Observed{})
	env.forgetLearning(t.Name)
	return env.forget(t, engine.Observed{}, changed)
}
