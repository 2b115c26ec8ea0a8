package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/internal/trust"
)

// measureTime bounds how long an engine may take to measure what it keeps.
const measureTime = 5 * time.Minute

// onEngine adds what an engine keeps that no container uses: caches, and leftovers.
func (p *pruner) onEngine(ctx context.Context, at facts.Place, projects places) error {
	name := at.Engine
	e, err := p.engineAt(ctx, at)
	if err != nil {
		return err
	}
	defer e.Close()
	within, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	caches, err := e.Caches(within, true)
	if err != nil {
		return err
	}
	for _, c := range caches {
		gone := !Exists(c.Directory)
		used := c.InUse && !projects[place{name, c.Project, c.Directory}] // else it goes before
		if used || !p.owns(name, c.Directory, recordOf(p.records, c.Project, c.Directory)) || !gone && !p.all {
			continue
		}
		why := "no container has it; the next `up` starts with an empty one"
		if gone {
			why = "its directory is gone"
		}
		p.add(Unused{Kind: "cache", Name: c.Cache + " of " + c.Worker + " in " + c.Directory, Engine: name, Why: why, Bytes: c.Size,
			remove: p.with(at, func(ctx context.Context, e engine.Engine) error { return e.RemoveCache(ctx, c) })})
	}
	left, err := e.Leftovers(within)
	if err != nil {
		return err
	}
	for _, l := range left {
		p.leftover(at, l, projects)
	}
	return nil
}

// leftover adds one of them, unless it is needed or another user's. Those of a project go
// with it.
func (p *pruner) leftover(on facts.Place, l engine.Leftover, projects places) {
	name := on.Engine
	why := "no container uses it"
	switch l.Kind {
	case engine.LeftoverVolume, engine.LeftoverNetwork, engine.LeftoverContainer:
		at := place{name, l.Project, l.Directory}
		_, listed := projects[at]
		switch {
		case l.Directory == "" && l.Kind == engine.LeftoverContainer: // of no project: it filled what all share
			why = "an interrupted command left it"
		case listed || !p.owns(name, l.Directory, recordOf(p.records, l.Project, l.Directory)) || p.isRun(l.Project):
			return
		default:
			projects[at] = true
			p.addProject(at, "an interrupted command left it, without a worker", l.Bytes)
			return
		}
	case engine.LeftoverImage:
		if l.Needed && !p.all || !slices.Contains(ownState, name) && !p.ownsBuild(l) {
			return
		}
	default:
		switch {
		case l.Needed && !p.all:
			return
		case l.Needed:
			why = "nothing is up; the next `up` makes it again"
		default:
			why = "it is of another version"
		}
	}
	p.add(Unused{Kind: string(l.Kind), Name: l.Name, Engine: name, Why: why, Bytes: l.Bytes, remove: p.with(on, func(ctx context.Context, e engine.Engine) error { return e.RemoveLeftover(ctx, l) })})
}

// ownsBuild reports whether this user had an image built: of others' images an engine
// tells nothing but the name.
func (p *pruner) ownsBuild(l engine.Leftover) bool {
	if p.owns(promise.Docker, "", nil) {
		return true
	}
	if accepted, err := (trust.Builds{Dir: p.StateDir()}).Has(l.Build); err == nil && accepted {
		return true
	}
	for name := range strings.SplitSeq(l.Name, ", ") {
		project, _, ok := strings.Cut(name, "-build:")
		if r, err := p.Record(project); ok && err == nil && r != nil {
			return true
		}
	}
	return false
}

// with connects to an engine for one removal. While another command is at work, what
// seems to be unused may be what it is about to use.
func (p *pruner) with(at facts.Place, remove func(context.Context, engine.Engine) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if p.isBusy() {
			return errInUse
		}
		e, err := p.engineAt(ctx, at)
		if err != nil {
			return EngineError(err)
		}
		defer e.Close()
		return remove(ctx, e)
	}
}
