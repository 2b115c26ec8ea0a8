package docker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// finishTime is what a call that changes the engine gets to end after the
// run was cancelled: an answer that nobody waits for would leave us not
// knowing what exists.
const finishTime = 10 * time.Second

// ApplyError says where a plan stopped. What was done stays for the next up
// or down, which repairs it.
type ApplyError struct {
	Step  engine.Step
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

// ExitCode is 5, the engine's, or the cause's own: a container that was not
// ready is a failure (1).
func (e *ApplyError) ExitCode() int {
	var coded interface{ ExitCode() int }
	if errors.As(e.Err, &coded) {
		return coded.ExitCode()
	}
	return 5
}

// Apply carries out the plan: every step as soon as those before it are done,
// at most [MaxStarts] starts at a time. It stops at the first error or when
// ctx ends; calls that are under way are let finish.
func (e *Engine) Apply(ctx context.Context, p *engine.Plan, events func(engine.Event)) error {
	if err := e.approve(ctx, p); err != nil {
		return err
	}
	r := &run{
		e: e, p: p, events: events,
		ids: map[string]string{}, ready: map[string]*readiness{},
		starts: &slots{free: MaxStarts}, calls: &slots{free: maxCalls},
	}
	for _, s := range p.Steps {
		if s.Op == engine.OpStartContainer && p.Compiled != nil && p.Compiled.Roles[s.Service] == compose.RoleGuard {
			r.starts.reserved = s.ID
		}
	}
	for _, c := range p.Observed.Containers {
		if p.Compiled != nil && c.Name == engine.ContainerName(p.Compiled.Project, c.Service) {
			r.ids[c.Service] = c.ID
		}
	}
	defer r.close()
	return r.all(ctx)
}

// run is one Apply.
type run struct {
	e *Engine
	p *engine.Plan

	eventMu sync.Mutex
	events  func(engine.Event)

	mu    sync.Mutex
	ids   map[string]string     // service → container
	ready map[string]*readiness // container → what it said

	starts, calls *slots
}

func (r *run) emit(ev engine.Event) {
	if r.events == nil {
		return
	}
	r.eventMu.Lock()
	defer r.eventMu.Unlock()
	r.events(ev)
}

func (r *run) all(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(map[int]chan struct{}, len(r.p.Steps))
	for _, s := range r.p.Steps {
		done[s.ID] = make(chan struct{})
	}
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		finished int
		failure  *ApplyError
	)
	for _, s := range r.p.Steps {
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
			r.emit(engine.Event{Step: s, Status: engine.StepStarted})
			err := r.step(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				err = r.e.explain(err)
				r.emit(engine.Event{Step: s, Status: engine.StepFailed, Err: err})
				// A container's own words say more than what followed from it.
				var told *NotReadyError
				if failure == nil || errors.As(err, &told) && !errors.As(failure.Err, &told) {
					failure = &ApplyError{Step: s, Total: len(r.p.Steps), Err: err}
				}
				stop(err)
				return
			}
			finished++
			r.emit(engine.Event{Step: s, Status: engine.StepDone})
			close(done[s.ID])
		})
	}
	wg.Wait()
	if failure != nil {
		failure.Done = finished
		if told := r.told(); told != nil && !errors.As(failure.Err, new(*NotReadyError)) {
			failure.Err = errors.Join(told, failure.Err)
		}
		return failure
	}
	if finished < len(r.p.Steps) {
		return fmt.Errorf("stopped after %d of %d steps; run `workshop up` to go on or `workshop down` to remove what is there: %w", finished, len(r.p.Steps), context.Cause(ctx))
	}
	return nil
}

// slot waits until the step may run.
func (r *run) slot(ctx context.Context, s engine.Step) (release func(), ok bool) {
	switch s.Op {
	case engine.OpWaitReady:
		return func() {}, ctx.Err() == nil
	case engine.OpStartContainer:
		return r.starts.get(ctx, s.ID)
	}
	return r.calls.get(ctx, s.ID)
}

// finish returns a context for a call that changes the engine: it outlives
// ctx by [finishTime].
func finish(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(finishTime, cancel)
		context.AfterFunc(out, func() { t.Stop() })
	})
	return out, func() { stop(); cancel() }
}

func (r *run) close() {
	r.mu.Lock()
	for _, rd := range r.ready {
		rd.close()
	}
	r.mu.Unlock()
	r.e.settle()
}
