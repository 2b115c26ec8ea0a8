package app

import (
	"context"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// SayEnding says which live changes a plan ends: allows end with the guard, and denies
// with the volume that they are in.
func (env *Env) SayEnding(ctx context.Context, r *Running, plan *engine.Plan) {
	guard, denies := endsGuard(plan), endsDenies(plan)
	if !guard && !denies {
		return
	}
	s := <-r.AskGuard(ctx)
	if s == nil {
		if denies {
			env.warn("live denies are dropped if there are any: no worker has a network any more")
		}
		return
	}
	var allowed, denied []string
	for _, l := range s.Live {
		if arg := RuleArg(l.Rule, l.Deny); l.Deny {
			denied = append(denied, Printable(arg))
		} else {
			allowed = append(allowed, Printable(arg))
		}
	}
	switch n := len(allowed); {
	case n == 0 || !guard:
	case n == 1:
		env.say("1 live allow ends with the guard: %s", allowed[0])
	default:
		env.say("%d live allows end with the guard: %s", n, strings.Join(allowed, ", "))
	}
	switch n := len(denied); {
	case n == 0 || !denies:
	case n == 1:
		env.say("1 live deny is dropped, because no worker has a network any more: %s", denied[0])
	default:
		env.say("%d live denies are dropped, because no worker has a network any more: %s", n, strings.Join(denied, ", "))
	}
}

// endsGuard reports whether a plan ends a guard that runs.
func endsGuard(plan *engine.Plan) bool {
	return slices.ContainsFunc(plan.Steps, func(s engine.Step) bool {
		return (s.Op == engine.OpRemoveContainer || s.Op == engine.OpStopContainer) &&
			slices.ContainsFunc(plan.Observed.Containers, func(c engine.Container) bool {
				return c.ID == s.ObjectID && c.Service == compose.GuardService && c.State == "running"
			})
	})
}

// endsDenies reports whether a plan removes the volume with the live denies.
func endsDenies(plan *engine.Plan) bool {
	return slices.ContainsFunc(plan.Steps, func(s engine.Step) bool {
		return s.Op == engine.OpRemoveVolume && slices.ContainsFunc(plan.Observed.Volumes, func(v engine.Object) bool {
			return v.Name == s.ObjectID && v.Labels[engine.LabelVolume] == compose.SocketsVolume
		})
	})
}
