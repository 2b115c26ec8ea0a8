package terminal

import (
	"io"
	"sync"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
)

// Progress shows what an engine does, a line for each object.
type Progress interface {
	Event(engine.Event)
	// Done ends the display; what is written to the stream after it stands
	// below.
	Done()
}

// NewProgress shows moving lines on a terminal, with colour or without. On any
// other stream, and on a dumb terminal, it prints one line per finished step.
func NewProgress(w io.Writer, dumb, color bool) Progress {
	if Is(w) && !dumb {
		return newMoving(w, color)
	}
	return &lines{w: w}
}

// lines writes plain text, for logs and CI.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

// Event implements [Progress].
func (l *lines) Event(e engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.w, app.StepText(e))
}

// Done implements [Progress].
func (l *lines) Done() {}
