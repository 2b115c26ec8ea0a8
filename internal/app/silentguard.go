package app

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
)

// silentGuardTime bounds the look for a guard that doesn't answer, and its stop.
const silentGuardTime = 15 * time.Second

// stopSilentGuard looks why workers didn't get ready in time. A guard that runs
// and answers nothing in a worker's room (stopped by a signal, hanging) looks
// healthy to the engine, so that no later plan would touch it: it is stopped,
// which leaves the rooms closed, and the next `up` starts it. It reports whether
// that was so.
func (env *Env) stopSilentGuard(ctx context.Context, e engine.Engine, plan *engine.Plan, late []string) bool {
	if plan.Compiled == nil {
		return false
	}
	probe, cancel := context.WithTimeout(context.WithoutCancel(ctx), silentGuardTime)
	defer cancel()
	late = slices.DeleteFunc(slices.Clone(late), func(service string) bool { return plan.Compiled.RoomOf[service] == "" })
	state, answers := controlAnswers(probe, e, plan.Project)
	env.SayClosed(state)
	closed := closedRooms(state) // nothing answers there, and stopping the guard would help nobody
	late = slices.DeleteFunc(late, func(service string) bool { return closed[service] != "" })
	silent := len(late) > 0 && (!answers ||
		slices.ContainsFunc(late, func(service string) bool { return !guardAnswers(probe, e, plan.Project, service) }))
	return silent && env.stopGuard(ctx, e, plan)
}

// stopGuard stops a guard that doesn't answer; it reports whether it did.
func (env *Env) stopGuard(ctx context.Context, e engine.Engine, plan *engine.Plan) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), silentGuardTime)
	defer cancel()
	seen, err := e.Observe(ctx, plan.Project)
	if err != nil {
		return false
	}
	stop := &engine.Plan{Project: plan.Project}
	for _, c := range seen.Containers {
		if plan.Compiled.Roles[c.Service] == compose.RoleGuard && c.State == "running" && !c.OneOff {
			stop.Steps = append(stop.Steps, engine.Step{
				ID: len(stop.Steps) + 1, Op: engine.OpStopContainer, Target: "container/" + c.Name, Service: c.Service, ObjectID: c.ID, Cause: "it doesn't answer",
			})
		}
	}
	return len(stop.Steps) > 0 && e.Apply(ctx, stop, nil) == nil
}

// guardAnswers asks from inside a worker what its gate asks. What can't be
// asked counts as answered: then the guard is left alone.
func guardAnswers(ctx context.Context, e engine.Engine, project, worker string) bool {
	var out bytes.Buffer
	code, err := e.Exec(ctx, project, worker, engine.ExecOptions{
		Command: []string{compose.InitPath, "probe", "dns 127.0.0.1 ready.workshop.internal A limit=2s"},
		Workdir: "/", Stdout: &out, Stderr: &bytes.Buffer{},
	})
	var saw struct{ Seen string }
	if err != nil || code > 1 || json.Unmarshal(out.Bytes(), &saw) != nil {
		return true
	}
	return saw.Seen != "TIMEOUT" && saw.Seen != "ECONNREFUSED"
}

// answerTime is how long a guard may take to say its state.
const answerTime = 2 * time.Second

// controlAnswers asks the guard itself: not every engine gets into a worker that
// isn't ready. What can't be asked counts as answered, with a zero state.
func controlAnswers(ctx context.Context, e engine.Engine, project string) (state control.State, answers bool) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := e.Control(ctx, project, "")
	if err != nil {
		return state, true
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	state, err = guardState(control.NewClient(conn))
	return state, err == nil || ctx.Err() == nil
}
