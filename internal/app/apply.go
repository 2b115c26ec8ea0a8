package app

import (
	"context"
	"errors"
	"time"

	"github.com/llmdo/workshop/internal/engine"
)

// errWaitTimeout is the cause of a context that --wait-timeout cancelled.
var errWaitTimeout = errors.New("wait timeout")

// Apply carries a plan out and shows how it goes. The wait timeout counts from
// the first wait on: pulling and building take the time that they take. 0
// means none. It bounds what a guard that runs takes for its new policy too.
func (env *Env) Apply(ctx context.Context, e engine.Engine, plan *engine.Plan, wait time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := &waitWatch{timeout: wait, cancel: cancel, waiting: map[string]string{}}
	defer watch.stop()
	plan.ReloadTimeout = wait
	env.event(Event{Kind: StepsBegin})
	var said readyNotes
	err := e.Apply(ctx, plan, func(ev engine.Event) {
		if said.event(ev) {
			return
		}
		watch.event(ev)
		env.event(Event{Kind: Step, Step: ev})
	})
	env.event(Event{Kind: StepsEnd})
	for _, note := range said.notes {
		env.say("%s", note)
	}
	if err == nil {
		return nil
	}
	const startsNew = "run `workshop up` again: it starts a new one; the rooms are closed until then"
	var silent *engine.SilentGuardError
	switch cause := context.Cause(ctx); {
	case errors.As(err, &silent):
		if env.stopGuard(ctx, e, plan) {
			return Fail(CodeFailed, "%w, and was stopped", silent).Hint(startsNew)
		}
	case errors.Is(cause, errWaitTimeout):
		f := watch.failure(plan.Project)
		if env.stopSilentGuard(ctx, e, plan, watch.lateServices()) {
			f = Fail(f.Code, "%w: the guard doesn't answer, and was stopped", f).Hint(startsNew)
		}
		return f
	case errors.Is(cause, ErrInterrupted):
		return Fail(CodeInterrupted, "interrupted").
			HintRemaining("nothing that is half done is open: go on with `workshop up`, or remove it with `workshop down`")
	}
	return EngineError(env.namePortHolder(ctx, e, err))
}
