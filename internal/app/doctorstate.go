package app

import (
	"context"
	"fmt"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/promise"
)

// checkState compares the records of what was brought up with what is there.
func (env *Env) checkState(ctx context.Context) []doctor.Finding {
	out := env.namespaceState(ctx)
	add := func(level doctor.Level, text, do string) {
		out = append(out, doctor.Finding{Group: doctor.State, Name: "record", Level: level, Text: text, Do: do})
	}
	records, err := facts.Records(env.recordsDir())
	if err != nil {
		add(doctor.Error, err.Error(), "remove the record of a project: `workshop -p NAME down`")
	}
	up := 0
	observed := env.onDocker(ctx)
	for _, r := range records {
		if r.Down {
			continue
		}
		is := env.engineOf(r.Project) != ""
		if !is {
			seen, err := observed(r.Project)
			if err != nil {
				continue // the engine's findings say why
			}
			is = len(seen.Containers) > 0
		}
		switch down := fmt.Sprintf("`workshop -p %s down`", r.Project); {
		case !is:
			add(doctor.Warning, fmt.Sprintf("project %s of %s is recorded as up, and nothing of it is there", r.Project, Printable(r.Dir)), "forget it: "+down)
		case !Exists(r.Dir):
			add(doctor.Warning, fmt.Sprintf("project %s is up, and its directory %s is gone", r.Project, Printable(r.Dir)), "end it: "+down)
		default:
			up++
		}
	}
	if len(out) == 0 {
		add(doctor.OK, Count(up, "workshop")+" of yours recorded, and there", "")
	}
	return out
}

// onDocker returns a function that looks at a project there; it connects once.
func (env *Env) onDocker(ctx context.Context) func(project string) (engine.Observed, error) {
	e, err := env.Engine(ctx, promise.Docker, EngineOptions{Lookup: env.Lookup})
	return func(project string) (engine.Observed, error) {
		if err != nil {
			return engine.Observed{}, err
		}
		var seen engine.Observed
		seen, err = e.Observe(ctx, project) // an engine that doesn't answer isn't asked again
		return seen, err
	}
}
