package cli

import (
	"io"
	"sync"

	"github.com/llmdo/workshop/internal/app"
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
// finished step elsewhere.
func (a *program) newProgress() progress {
	if isTerminal(a.Err) && a.Getenv("TERM") != "dumb" {
		return newMoving(a.Err, a.colorErr())
	}
	return &lines{w: a.Err}
}

// lines writes plain text, for logs and CI.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) event(e engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.w, app.StepText(e))
}

func (l *lines) done() {}
