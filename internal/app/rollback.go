package app

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// rollBackTime bounds what takes back an up that failed. A second signal ends the
// command before.
const rollBackTime = 60 * time.Second

// lastLines of a container that goes are shown: nobody can ask for them later.
const lastLines = "20"

// rollBack takes back what an up that failed has made (see
// [engine.PlanRollBack]), and says what is there. The error is the failure, with
// the hints that hold now.
func (env *Env) rollBack(ctx context.Context, e engine.Engine, c *compose.Compiled, before engine.Observed, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollBackTime)
	defer cancel()
	f, ok := errors.AsType[*Failure](failed)
	if !ok {
		f = &Failure{Code: CodeFailed, Err: failed}
	}
	now, err := e.Observe(ctx, before.Project)
	if err != nil {
		return f // an engine that is gone: the next up or down finds what is left
	}
	plan := engine.PlanRollBack(c, before, now)
	if len(plan.Steps) == 0 {
		return f
	}
	removed := func(service string) bool {
		return slices.ContainsFunc(plan.Steps, func(s engine.Step) bool { return s.Op == engine.OpRemoveContainer && s.Service == service })
	}
	stays := false
	for _, service := range notReady(failed) {
		if removed(service) {
			env.lastWords(ctx, e, plan.Project, service)
		} else {
			stays = true
		}
	}
	if !stays {
		f.Remaining = nil
	}
	if err := env.Apply(ctx, e, plan, 0); err != nil {
		env.warn("what this `up` had made is not all removed: %v", err)
		return f
	}
	kept := slices.DeleteFunc(slices.Clone(now.Containers), func(k engine.Container) bool {
		return k.State != "running" || slices.ContainsFunc(plan.Steps, func(s engine.Step) bool { return s.ObjectID == k.ID })
	})
	if len(kept) == 0 {
		return f.Hint("project %s is as it was before `up`: what this one made was removed", before.Project)
	}
	var names []string
	for _, k := range kept {
		names = append(names, k.Service)
	}
	slices.Sort(names)
	return f.Hint("what this `up` made for the first time was removed; still there: %s", strings.Join(names, ", "))
}

// notReady are the services whose containers an up has waited for in vain.
func notReady(failed error) (services []string) {
	if told, ok := errors.AsType[*engine.NotReadyError](failed); ok {
		services = append(services, told.Service)
	}
	if late, ok := errors.AsType[*lateError](failed); ok {
		services = append(services, late.services...)
	}
	return services
}

// lastWords shows the end of the log of a container that wasn't ready and is
// removed now.
func (env *Env) lastWords(ctx context.Context, e engine.Engine, project, service string) {
	var text bytes.Buffer
	if err := e.Logs(ctx, project, []string{service}, engine.LogsOptions{Tail: lastLines, Stdout: &text, Stderr: &text}); err != nil {
		env.warn("log of %s: %v", service, err)
	}
	if text.Len() > 0 {
		env.warn("%s is removed; the end of its log:\n%s", service, text.String())
	}
}
