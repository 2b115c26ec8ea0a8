package app

import (
	"context"
	"slices"
	"time"

	"github.com/llmdo/workshop/internal/engine"
)

// An engine finishes what a command asked for that was killed: a container may
// appear, or go, after the next command has looked. So a conflict is looked at
// again, and after a killed command what was there is.
const (
	// convergeTime bounds this: an engine that is still busy then has another
	// problem, and its answer is the error.
	convergeTime = 15 * time.Second
	// convergePause is the first pause between two tries, each later one is twice
	// as long, up to convergeTime / 10.
	convergePause = 100 * time.Millisecond
	// settleTime is how long an engine may take to finish one call.
	settleTime = 500 * time.Millisecond
)

// converge plans and carries out, again where that met a conflict. plan returns
// what is to be done now.
func (ch *Change) converge(ctx context.Context, e engine.Engine, wait time.Duration, plan func() (*engine.Plan, error)) error {
	end := time.Now().Add(convergeTime)
	for pause := convergePause; ; pause = min(2*pause, convergeTime/10) {
		p, err := plan()
		if err != nil {
			return err
		}
		if len(p.Steps) > 0 {
			err = ch.env.Apply(ctx, e, p, wait)
		}
		if err == nil && ch.unfinished && leavesSome(p) {
			err = lookAgain(ctx, plan)
		}
		if !engine.IsConflict(err) || ctx.Err() != nil || time.Now().Add(pause).After(end) {
			return err
		}
		ch.env.detail("%v; looking again at what is there", err)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// leavesSome reports whether a plan relies on what was there, or on nothing being
// there.
func leavesSome(p *engine.Plan) bool {
	return p.Compiled == nil || slices.ContainsFunc(p.Steps, func(s engine.Step) bool { return s.Op == engine.OpWaitReady && !p.Starts(s.Service) })
}

// lookAgain is a conflict where a killed command's last call has undone
// something.
func lookAgain(ctx context.Context, plan func() (*engine.Plan, error)) error {
	if err := sleep(ctx, settleTime); err != nil {
		return err
	}
	p, err := plan()
	if err == nil && !p.Empty() {
		err = engine.Conflict("%s changed after it was looked at", p.Steps[0].Target)
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
