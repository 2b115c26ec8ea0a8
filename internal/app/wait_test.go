package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/engine"
)

// TestWaitWatch: the time counts from the first wait on, and the late one is
// named.
func TestWaitWatch(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &waitWatch{timeout: 20 * time.Millisecond, cancel: cancel, waiting: map[string]string{}}
	defer w.stop()
	w.event(engine.Event{Step: engine.Step{Op: engine.OpPullImage, Target: "image/x"}, Status: engine.StepStarted})
	time.Sleep(50 * time.Millisecond)
	if ctx.Err() != nil {
		t.Fatal("a pull counted")
	}
	for _, status := range []engine.Status{engine.StepStarted, engine.StepDone} {
		w.event(engine.Event{Step: engine.Step{Op: engine.OpWaitReady, Target: "container/room"}, Status: status})
	}
	time.Sleep(50 * time.Millisecond)
	if ctx.Err() != nil {
		t.Fatal("it counted on when nothing was waited for any more")
	}
	for _, target := range []string{"container/a", "container/b"} {
		w.event(engine.Event{Step: engine.Step{Op: engine.OpWaitReady, Target: target}, Status: engine.StepStarted})
	}
	w.event(engine.Event{Step: engine.Step{Op: engine.OpWaitReady, Target: "container/a"}, Status: engine.StepDone})
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), errWaitTimeout) {
		t.Fatal(context.Cause(ctx))
	}
	f := w.failure("p")
	if f.Code != CodeFailed || !strings.HasSuffix(f.Error(), ": container/b") {
		t.Errorf("%d: %v", f.Code, f)
	}
}
