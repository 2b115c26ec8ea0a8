package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
)

// StepWords are what a step is called while it runs and when it is done.
func StepWords(op engine.Op) (running, finished string) {
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

// FailedWord tells a step that failed from one that was called off because
// another did.
func FailedWord(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrInterrupted) || errors.Is(err, errWaitTimeout) {
		return "left"
	}
	if engine.IsConflict(err) {
		return "changed"
	}
	return "failed"
}

// StepInBrief reports whether a step is worth a line where nobody asked for more:
// what takes long, and what a reload ended. What was done to workers is
// [Changes], what failed the error.
func StepInBrief(e engine.Event) bool {
	switch e.Step.Op {
	case engine.OpPullImage, engine.OpBuildImage:
		return e.Status != engine.StepFailed
	case engine.OpReloadPolicy:
		return e.Status == engine.StepProgress && e.Detail != engine.NoneEnded
	}
	return false
}

// StepText is what happens to a step as a line of plain text, for logs and CI;
// empty: nothing.
func StepText(e engine.Event) string {
	running, finished := StepWords(e.Step.Op)
	target := Printable(e.Step.Target)
	switch e.Status {
	case engine.StepStarted:
		// Only what takes long says that it began.
		if e.Step.Op == engine.OpPullImage || e.Step.Op == engine.OpBuildImage {
			return fmt.Sprintf("%s %s\n", target, running)
		}
	case engine.StepProgress:
		switch {
		case strings.TrimSpace(e.Detail) == "":
		case e.Step.Op == engine.OpBuildImage:
			return fmt.Sprintf("%s | %s\n", target, Printable(e.Detail))
		case e.Step.Op == engine.OpReloadPolicy:
			return fmt.Sprintf("network: %s\n", Printable(e.Detail))
		}
	case engine.StepDone:
		return fmt.Sprintf("%s %s\n", target, finished)
	case engine.StepFailed:
		return fmt.Sprintf("%s %s\n", target, FailedWord(e.Err))
	}
	return ""
}
