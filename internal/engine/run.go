package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/llmdo/workshop/compose"
)

// MaxStarts is how many containers are started at a time; on two cores more than
// four are no faster.
const MaxStarts = 4

// maxCalls is how many other steps run at a time.
const maxCalls = 8

// FinishTime is how long a call that changes the engine may continue after the run
// was cancelled: without its response it is unknown what exists.
const FinishTime = 10 * time.Second

// ApplyError is where a plan stopped. The finished steps are not rolled back; the
// next up or down repairs the project.
type ApplyError struct {
	Step  Step
	Done  int // steps that were done
	Total int
	Err   error
}

// Error names the step.
func (e *ApplyError) Error() string {
	return fmt.Sprintf("%s %s: %v", e.Step.Op, e.Step.Target, e.Err)
}

// Unwrap returns the cause.
func (e *ApplyError) Unwrap() error { return e.Err }

// ExitCode is 5 (engine), or the cause's own: a container that isn't ready is a
// failure (1).
func (e *ApplyError) ExitCode() int {
	var coded interface{ ExitCode() int }
	if errors.As(e.Err, &coded) {
		return coded.ExitCode()
	}
	return 5
}

// Runner carries out the steps of a plan: every step as soon as those it waits for
// are done, at most [MaxStarts] starts at a time. An engine makes one for each
// Apply.
type Runner struct {
	Plan   *Plan
	Events func(Event) // called by one goroutine at a time; may be nil
	// Do carries out one step.
	Do func(context.Context, Step) error
	// Explain adds to an error what its origin couldn't know; may be nil.
	Explain func(error) error
	// Told returns a [NotReadyError] with the failure that a container printed, if
	// another step failed first as a consequence; may be nil.
	Told func() error

	eventMu       sync.Mutex
	starts, calls *slots
}

// Emit reports an event of a step.
func (r *Runner) Emit(ev Event) {
	if r.Events == nil {
		return
	}
	r.eventMu.Lock()
	defer r.eventMu.Unlock()
	r.Events(ev)
}

// Run carries out the plan. It stops at the first error, an [ApplyError], or when
// ctx ends; running calls may finish.
func (r *Runner) Run(ctx context.Context) error {
	r.starts, r.calls = &slots{free: MaxStarts}, &slots{free: maxCalls}
	for _, s := range r.Plan.Steps {
		if s.Op == OpStartContainer && r.Plan.Compiled != nil && r.Plan.Compiled.Roles[s.Service] == compose.RoleGuard {
			r.starts.reserved = s.ID
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(map[int]chan struct{}, len(r.Plan.Steps))
	for _, s := range r.Plan.Steps {
		done[s.ID] = make(chan struct{})
	}
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		finished int
		failure  *ApplyError
	)
	for _, s := range r.Plan.Steps {
		wg.Go(func() {
			for _, id := range s.After {
				select {
				case <-done[id]:
				case <-ctx.Done():
					return
				}
			}
			release, ok := r.slot(ctx, s)
			if !ok {
				return
			}
			defer release()
			r.Emit(Event{Step: s, Status: StepStarted})
			err := r.Do(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if r.Explain != nil {
					err = r.Explain(err)
				}
				r.Emit(Event{Step: s, Status: StepFailed, Err: err})
				// A container's own message is more helpful than its consequence.
				var told *NotReadyError
				if failure == nil || errors.As(err, &told) && !errors.As(failure.Err, &told) {
					failure = &ApplyError{Step: s, Total: len(r.Plan.Steps), Err: err}
				}
				stop(err)
				return
			}
			finished++
			r.Emit(Event{Step: s, Status: StepDone})
			close(done[s.ID])
		})
	}
	wg.Wait()
	if failure != nil {
		failure.Done = finished
		// What a container that is refused says of itself isn't why.
		if r.Told != nil && !errors.As(failure.Err, new(*NotReadyError)) && !errors.As(failure.Err, new(*RefusedError)) {
			if told := r.Told(); told != nil {
				failure.Err = fmt.Errorf("%w\n%v", told, failure.Err) // %v: its consequence isn't a conflict
			}
		}
		return failure
	}
	if finished < len(r.Plan.Steps) {
		return fmt.Errorf("stopped after %d of %d steps; run `workshop up` to continue or `workshop down` to remove what exists: %w", finished, len(r.Plan.Steps), context.Cause(ctx))
	}
	return nil
}

// slot waits until the step may run.
func (r *Runner) slot(ctx context.Context, s Step) (release func(), ok bool) {
	switch s.Op {
	case OpWaitReady:
		return func() {}, ctx.Err() == nil
	case OpStartContainer:
		return r.starts.get(ctx, s.ID)
	}
	return r.calls.get(ctx, s.ID)
}

// Finish returns a context for a call that changes the engine: it outlives
// ctx by [FinishTime].
func Finish(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(FinishTime, cancel)
		context.AfterFunc(out, func() { t.Stop() })
	})
	return out, func() { stop(); cancel() }
}
