package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/engine"
)

// progress shows what an engine does, a line for each object.
type progress interface {
	event(engine.Event)
	// done ends the display; what is written to the stream after it stands
	// below.
	done()
}

// newProgress chooses by the stream: moving lines on a terminal, one line per
// finished step elsewhere, nothing with --quiet.
func (a *program) newProgress() progress {
	switch {
	case a.set.quiet:
		return quiet{}
	case isTerminal(a.Err) && a.getenv("TERM") != "dumb":
		return newMoving(a.Err, a.colorErr())
	}
	return &lines{w: a.Err}
}

type quiet struct{}

func (quiet) event(engine.Event) {}
func (quiet) done()              {}

// words are what a step is called while it runs and when it is done.
func words(op engine.Op) (running, finished string) {
	switch op {
	case engine.OpLoadInit:
		return "loading", "loaded"
	case engine.OpCheckPort:
		return "checking", "free"
	case engine.OpFillTools:
		return "verifying", "verified"
	case engine.OpPullImage:
		return "pulling", "pulled"
	case engine.OpBuildImage:
		return "building", "built"
	case engine.OpFillVolume:
		return "filling", "filled"
	case engine.OpStartContainer:
		return "starting", "started"
	case engine.OpWaitReady:
		return "waiting", "ready"
	case engine.OpReloadPolicy:
		return "reloading", "reloaded"
	case engine.OpStopContainer:
		return "stopping", "stopped"
	case engine.OpRemoveContainer, engine.OpRemoveNetwork, engine.OpRemoveVolume:
		return "removing", "removed"
	}
	return "creating", "created"
}

// failedWord tells a step that failed from one that was called off because
// another did.
func failedWord(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted) || errors.Is(err, errWaitTimeout) {
		return "left"
	}
	if engine.IsConflict(err) {
		return "changed"
	}
	return "failed"
}

// lines writes plain text, for logs and CI.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) event(e engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	running, finished := words(e.Step.Op)
	switch e.Status {
	case engine.StepStarted:
		// Only what takes long says that it began.
		if e.Step.Op == engine.OpPullImage || e.Step.Op == engine.OpBuildImage {
			fmt.Fprintf(l.w, "%s %s\n", e.Step.Target, running)
		}
	case engine.StepProgress:
		if (e.Step.Op == engine.OpBuildImage || e.Step.Op == engine.OpReloadPolicy) && strings.TrimSpace(e.Detail) != "" {
			fmt.Fprintf(l.w, "%s | %s\n", e.Step.Target, printable(e.Detail))
		}
	case engine.StepDone:
		fmt.Fprintf(l.w, "%s %s\n", e.Step.Target, finished)
	case engine.StepFailed:
		fmt.Fprintf(l.w, "%s %s\n", e.Step.Target, failedWord(e.Err))
	}
}

func (l *lines) done() {}
