package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/engine"
)

// waitWatch ends an apply that waits too long for READY lines, and knows of
// whom.
type waitWatch struct {
	mu      sync.Mutex
	timeout time.Duration
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	waiting map[string]string // services by target
	late    []string
	names   []string // services that are late
}

func (w *waitWatch) event(e engine.Event) {
	if e.Step.Op != engine.OpWaitReady {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Status {
	case engine.StepStarted:
		w.waiting[e.Step.Target] = e.Step.Service
		if w.timer == nil && w.timeout > 0 {
			w.timer = time.AfterFunc(w.timeout, w.expire)
		}
	case engine.StepDone, engine.StepFailed:
		delete(w.waiting, e.Step.Target)
		// A guard that is given a policy has a time of its own.
		if len(w.waiting) == 0 && w.timer != nil {
			w.timer.Stop()
			w.timer = nil
		}
	}
}

func (w *waitWatch) expire() {
	w.mu.Lock()
	if len(w.waiting) == 0 { // it was being stopped
		w.mu.Unlock()
		return
	}
	w.late = slices.Sorted(maps.Keys(w.waiting))
	w.names = slices.Sorted(maps.Values(w.waiting))
	w.mu.Unlock()
	w.cancel(errWaitTimeout)
}

func (w *waitWatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// failure names who was late.
func (w *waitWatch) failure(project string) *Failure {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &Failure{Code: CodeFailed, Err: &lateError{after: w.timeout, late: w.late, services: w.names}}
	return f.Hint("wait longer with `--wait-timeout 5m`").HintRemaining("see `workshop -p %s logs`", project)
}

func (w *waitWatch) lateServices() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names
}

// lateError names who was not ready in time.
type lateError struct {
	after          time.Duration
	late, services []string // targets of steps; services
}

func (e *lateError) Error() string {
	return fmt.Sprintf("not ready after %s: %s", e.after, strings.Join(e.late, ", "))
}
