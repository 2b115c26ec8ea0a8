package app

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/facts"
)

// Unused is something that [Env.Prune] removes.
type Unused struct {
	// Kind is a word: project, run, cache, image, volume, ports, record, ….
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Engine string `json:"engine,omitempty"`
	// Why says in words that nothing uses it.
	Why string `json:"why"`
	// Bytes that it has on disk; -1: not known.
	Bytes  int64 `json:"bytes"`
	remove func(context.Context) error
}

// PruneOptions select what is removed. All: also what a workshop that is down would use
// again.
type PruneOptions struct{ All bool }

// pruner collects what nothing uses.
type pruner struct {
	*Env
	all     bool
	records []*facts.Record
	listed  []onEngine
	// partial: an engine doesn't answer, so what seems to be gone may be up there.
	partial bool
	out     []Unused
}

// FindUnused returns what nothing uses. It removes nothing.
func (env *Env) FindUnused(ctx context.Context, o PruneOptions) ([]Unused, error) {
	p := &pruner{Env: env, all: o.All}
	var err error
	if p.records, err = facts.Records(env.recordsDir()); err != nil {
		return nil, Fail(CodeFailed, "what is in use isn't known: %w", err).Hint("`workshop -p NAME down` removes the record of a project")
	}
	var quiet silent
	if p.listed, quiet, err = env.listEngines(ctx, ListOptions{}, p.records); err != nil {
		return nil, err
	}
	p.partial = quiet.any()
	p.killed()
	projects := p.projects()
	for _, at := range env.enginesHere(p.records) {
		if err := p.onEngine(ctx, at, projects); err != nil && ctx.Err() == nil && !isAbsent(err) {
			if _, unreachable := errors.AsType[*docker.UnreachableError](err); !unreachable { // that was said
				env.warn("engine %s: %s", at.Engine, firstLine(err))
			}
			p.partial = true
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if p.partial {
		env.warn("an engine doesn't answer: what may belong to a workshop there stays")
	} else {
		p.gone(projects)
	}
	return p.out, nil
}

func (p *pruner) add(u Unused) { p.out = append(p.out, u) }

// PruneResult is what was removed.
type PruneResult struct {
	Removed int
	Bytes   int64
	Failed  []error
}

// Prune removes what [Env.FindUnused] found, each after another look at what uses it. It
// goes on where one fails.
func (env *Env) Prune(ctx context.Context, list []Unused) (r PruneResult) {
	for _, u := range list {
		if ctx.Err() != nil {
			r.Failed = append(r.Failed, context.Cause(ctx))
			return r
		}
		err := u.remove(ctx)
		switch {
		case err == nil:
			r.Removed++
			r.Bytes += max(u.Bytes, 0)
		case errors.Is(err, errInUse) || engine.IsConflict(err):
			env.say("%s %s stays: it is in use by now", u.Kind, Printable(u.Name))
		default:
			r.Failed = append(r.Failed, Fail(CodeOf(err), "%s %s: %w", u.Kind, u.Name, err))
		}
	}
	return r
}

// errInUse is something that wasn't used when it was found.
var errInUse = errors.New("it is in use")

// killed are runs that were killed. Their notes stay locked only while they are read.
func (p *pruner) killed() {
	for _, note := range p.killedRuns() {
		note.leave()
		p.add(Unused{Kind: "run", Name: note.project, Engine: note.Engine, Why: "it was killed", remove: func(ctx context.Context) error {
			for _, again := range p.killedRuns() {
				if again.project != note.project {
					again.leave()
					continue
				}
				err := p.removeKilled(ctx, again)
				if err != nil {
					again.leave()
					return err
				}
				again.forget()
			}
			return nil
		}})
	}
}

// isBusy reports whether another command of this user works on any project: it may be
// about to use what is unused now.
func (env *Env) isBusy() bool {
	locks, _ := filepath.Glob(filepath.Join(env.StateDir(), "*.lock"))
	for _, path := range locks {
		held, _, err := lockFile(path)
		if held != nil {
			_ = held.Unlock() // the file stays: it tells that its last holder was killed
		} else if err == nil && Exists(path) {
			return true
		}
	}
	return false
}
