package terminal

import (
	"io"
	"sync"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
)

// Progress shows what an engine does.
type Progress interface {
	Event(engine.Event)
	// Done ends the display; what is written to the stream later
	// comes below.
	Done()
}

// NewProgress shows moving lines on a terminal, with colour or without: one per
// worker and image, which are gone at the end, or, with all, one per object, which
// stay. On any other stream, and on a dumb terminal, it prints a line per step: of
// those that take long, or all.
func NewProgress(w io.Writer, dumb, color, all bool) Progress {
	if Is(w) && !dumb {
		return newMoving(w, color, all)
	}
	return &lines{w: w, all: all}
}

// lines writes plain text, for logs and CI.
type lines struct {
	mu  sync.Mutex
	w   io.Writer
	all bool
}

// Event implements [Progress].
func (l *lines) Event(e engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all || app.StepInBrief(e) {
		_, _ = io.WriteString(l.w, app.StepText(e))
	}
}

// Done implements [Progress].
func (l *lines) Done() {}
