package terminal

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/docker/go-units"
	"github.com/fatih/color"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
)

// moving keeps one line per object on a terminal and rewrites it.
type moving struct {
	// adding guards lines. A line is added only between two refreshes, and those
	// take mu: who adds must not have it.
	adding sync.Mutex
	lines  []*movingLine

	mu    sync.Mutex // what is in the lines
	p     *mpb.Progress
	all   bool // objects of all kinds, and they stay
	color bool
	width int // of the terminal; 0: not known
}

// movingLine is one object: what is done with it at the moment.
type movingLine struct {
	moving  *moving
	bar     *mpb.Bar
	target  string
	status  engine.Status
	text    string
	began   time.Time
	took    time.Duration // of the finished steps
	current string        // progress of a pull or a build
	note    string        // what a reload did
}

// maxLines is more than the objects of a workshop with maxWorkers. mpb queues a
// line per refresh; one that finds no place waits in a goroutine, which panics
// when the display ends before it.
const maxLines = 1 << 14

func newMoving(w io.Writer, color, all bool) *moving {
	return &moving{
		p:   mpb.New(mpb.WithOutput(w), mpb.WithRefreshRate(100*time.Millisecond), mpb.WithQueueLen(maxLines)),
		all: all, color: color, width: Width(w, ""),
	}
}

// Event implements [Progress].
func (m *moving) Event(e engine.Event) {
	image := e.Step.Op == engine.OpPullImage || e.Step.Op == engine.OpBuildImage
	if !m.all && !image && !app.WorkerStep(e.Step) {
		return
	}
	l := m.line(app.Printable(e.Step.Target))
	m.mu.Lock()
	defer m.mu.Unlock()
	running, finished := app.StepWords(e.Step.Op)
	switch e.Status {
	case engine.StepStarted:
		l.status, l.text, l.began, l.current = e.Status, running, time.Now(), ""
	case engine.StepProgress:
		if e.Step.Op == engine.OpReloadPolicy {
			l.note = app.Printable(e.Detail)
			return
		}
		l.current = app.Printable(lastLine(e.Detail))
		if e.Total > 0 {
			l.current = fmt.Sprintf("%s/%s %s", units.HumanSize(float64(e.Current)), units.HumanSize(float64(e.Total)), l.current)
		}
	case engine.StepDone, engine.StepFailed:
		l.status, l.text, l.current = e.Status, finished, ""
		if e.Status == engine.StepFailed {
			l.text = app.FailedWord(e.Err)
		}
		l.took += time.Since(l.began)
	}
}

// line finds the object's, or adds one below the others.
func (m *moving) line(target string) *movingLine {
	m.adding.Lock()
	defer m.adding.Unlock()
	for _, l := range m.lines {
		if l.target == target {
			return l
		}
	}
	l := &movingLine{moving: m, target: target, began: time.Now()}
	l.bar = m.p.MustAdd(0, mpb.NopStyle().Build(), mpb.BarWidth(0),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return l.render() })))
	m.lines = append(m.lines, l)
	return l
}

// fixedColumns is how wide a line is without what is going on in it.
const fixedColumns = 1 + 1 + 1 + 9 + 1 + 34 + 1 + 9 + 1 + 6

// spinner has one figure per refresh.
const spinner = `⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏`

func (l *movingLine) render() string {
	l.moving.mu.Lock()
	defer l.moving.mu.Unlock()
	on := l.moving.color
	mark, took := "", l.took
	switch l.status {
	case engine.StepDone:
		mark = Paint(on, color.FgGreen)("✔")
	case engine.StepFailed:
		mark = Paint(on, color.FgRed)("✘")
	default:
		took += time.Since(l.began)
		figures := []rune(spinner)
		mark = Paint(on, color.FgCyan)(string(figures[int(took/(100*time.Millisecond))%len(figures)]))
	}
	kind, name, _ := strings.Cut(l.target, "/")
	text := fmt.Sprintf(" %s %-9s %-34s %-9s %5.1fs", mark, kind, Fit(name, 34), l.text, took.Seconds())
	// A line that wraps would break the display.
	more := cmp.Or(l.current, l.note)
	if room := l.moving.width - fixedColumns; more != "" && room > 3 {
		text += "  " + Fit(more, room-3)
	}
	return text
}

// Done implements [Progress].
func (m *moving) Done() {
	m.adding.Lock()
	lines := m.lines
	m.adding.Unlock()
	for _, l := range lines {
		if m.all {
			l.bar.SetTotal(-1, true)
		} else {
			l.bar.Abort(true)
		}
	}
	m.p.Wait()
}

func lastLine(s string) string {
	s = strings.TrimRight(s, "\r\n")
	return s[strings.LastIndexAny(s, "\r\n")+1:]
}
