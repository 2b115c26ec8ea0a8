package verify

import (
	"strings"

	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Verdict is the result of one line.
type Verdict string

// The verdicts.
const (
	Held      Verdict = "held"
	Broken    Verdict = "broken"
	NotTested Verdict = "not tested"
)

// Verdicts are all of them.
var Verdicts = []Verdict{Held, Broken, NotTested}

// Line is one promise of one container.
type Line struct {
	Promise string `json:"promise"`
	Title   string `json:"title"`
	// Worker is the worker, or the service (room, guard); empty for the workshop.
	Worker string `json:"worker,omitempty"`
	// Copy: it was seen in a copy of the project.
	Copy    bool    `json:"copy,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Why is why it is broken, or was not tested.
	Why string `json:"why,omitempty"`
	// Tried is what was tried or looked at.
	Tried string `json:"tried,omitempty"`
	// Inside is what the worker says, Outside what this machine and the guard show.
	Inside  string `json:"inside,omitempty"`
	Outside string `json:"outside,omitempty"`
	// Control is what shows that the test can tell.
	Control string `json:"control,omitempty"`
}

// Report is the result of a run: schemas/verify.schema.json.
type Report struct {
	Workshop string `json:"workshop"`
	Project  string `json:"project"`
	Engine   string `json:"engine"`
	// Live: allowed hosts were dialled. Disruptive: a copy of the project was brought up,
	// and things in it were killed and filled.
	Live       bool   `json:"live"`
	Disruptive bool   `json:"disruptive"`
	Held       int    `json:"held"`
	Broken     int    `json:"broken"`
	NotTested  int    `json:"not_tested"`
	Lines      []Line `json:"lines"`
}

// Add adds lines, and counts them.
func (r *Report) Add(lines ...Line) {
	for _, l := range lines {
		switch l.Verdict {
		case Held:
			r.Held++
		case Broken:
			r.Broken++
		default:
			l.Verdict = NotTested
			r.NotTested++
		}
		r.Lines = append(r.Lines, l)
	}
}

// Sort orders the lines by promise, and those of one by worker: what is not about a
// worker comes last.
func (r *Report) Sort() {
	sortfunc.Stable(r.Lines, func(x, y Line) int { return order(x.Promise) - order(y.Promise) })
}

// maxText bounds a text of a line in bytes.
const maxText = 600

// text is a list of what was seen, as one text: what a worker, a name or the engine
// said may be in it.
func text(parts []string) string {
	return diagtext.Printable(clip.Bytes(strings.Join(parts, "; "), maxText))
}
