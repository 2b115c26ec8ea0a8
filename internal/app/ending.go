package app

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
)

// endingTime bounds how long a plan waits to learn what it ends: longer than a look
// that is for display, since nobody can ask afterwards.
const endingTime = 5 * time.Second

// SayEnding says which live changes a plan ends: allows end with the guard, and denies
// with the volume that they are in, or with a guard that couldn't store them.
func (env *Env) SayEnding(ctx context.Context, r *Running, plan *engine.Plan) {
	guard, denies := endsGuard(plan), endsDenies(plan)
	if !guard && !denies {
		return
	}
	for _, line := range endingLines(<-r.askGuard(ctx, endingTime), guard, denies) {
		env.say("%s", line)
	}
}

// endingLines is what [Env.SayEnding] says of a guard's state; nil: it doesn't answer.
func endingLines(s *control.State, guard, denies bool) (lines []string) {
	if s == nil {
		if denies {
			lines = append(lines, "live denies are dropped if there are any, because no worker has a network any more")
		}
		return lines
	}
	var allowed, denied []string
	for _, l := range s.Live {
		if arg := Printable(RuleArg(l.Rule, l.Deny)); l.Deny {
			denied = append(denied, arg)
		} else {
			allowed = append(allowed, arg)
		}
	}
	say := func(args []string, one, many string) {
		switch n := len(args); n {
		case 0:
		case 1:
			lines = append(lines, "1 live "+one+": "+args[0])
		default:
			lines = append(lines, strconv.Itoa(n)+" live "+many+": "+strings.Join(args, ", "))
		}
	}
	if guard {
		say(allowed, "allow ends with the guard", "allows end with the guard")
	}
	why := "dropped, because no worker has a network any more"
	if !denies {
		why = "dropped, because the guard could not store what is denied"
	}
	if denies || guard && !s.Stored {
		say(denied, "deny is "+why, "denies are "+why)
	}
	return lines
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
