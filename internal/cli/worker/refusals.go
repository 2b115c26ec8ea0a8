package worker

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
)

const (
	// toolFirst is what a program has to say its own words before ours; a
	// look-up and its connection come within it.
	toolFirst = 250 * time.Millisecond
	// sameAgain is how long a target isn't shown again, and for how long maxLive
	// lines are enough.
	sameAgain = time.Minute
	maxLive   = 20
	// maxTold bounds what is remembered of a long session.
	maxTold = 1000
)

// refusedWatch shows on a person's terminal what the guard refuses to a worker
// while a command runs there. It is the command's standard output, and holds its
// lines while there is no room for them. Nil shows nothing.
type refusedWatch struct {
	out, err io.Writer
	worker   string
	stop     func() // following; nothing waits for its end
	// signs are of what the command writes; nil: nobody reads it.
	signs *app.Signs
	// pasteable completes the command lines of a text.
	pasteable func(string) string
	// saved marks the refusals that the file allows by now; nil marks none.
	saved func([]app.Refusal) []app.Refusal
	// oneOff: nothing is left to look at later.
	oneOff bool

	mu      sync.Mutex
	screen  screen
	waiting app.Refusals
	more    int // beyond what is shown
	told    []toldRefusal
	moreAt  time.Time // when more was said last
	timed   bool      // a show is on its way
	late    bool      // it found no room
	ended   bool
}

type toldRefusal struct {
	app.Refusal
	at time.Time
}

// watchRefused begins to show what is refused from a time on, where the command
// has a terminal and a person reads our words there too.
func (a verbs) watchRefused(ctx context.Context, e *app.Running, worker string, run *engine.ExecOptions, since time.Time, signs *app.Signs) *refusedWatch {
	if !run.TTY || a.Quiet || e.File == "" || !terminal.Is(a.Err) {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &refusedWatch{out: run.Stdout, err: a.Err, worker: worker, stop: cancel, signs: signs, waiting: app.Refusals{Worker: worker}}
	w.pasteable, w.oneOff = a.Pasteable, e.OneOff()
	w.saved = func(list []app.Refusal) []app.Refusal { return a.AgainstFile(ctx, e.ProjectRef, worker, list) }
	run.Stdout = w
	go e.FollowEvents(ctx, since, func(l events.Line) { w.add(l, time.Now()) })
	return w
}

// Write implements [io.Writer]: it is what the command writes.
func (w *refusedWatch) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.out.Write(b)
	_, _ = w.screen.Write(b[:n])
	if w.late {
		w.show(time.Now())
	}
	return n, err
}

// add takes an event, which is shown a moment later.
func (w *refusedWatch) add(l events.Line, now time.Time) {
	x, ok := app.RefusalOf(l, w.worker)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case slices.ContainsFunc(w.told, func(y toldRefusal) bool { return now.Sub(y.at) < sameAgain && y.Says(x) }):
		return
	case len(w.waiting.List) < maxLive:
		w.waiting.Add(l)
	case !slices.ContainsFunc(w.waiting.List, func(y app.Refusal) bool { return y.Says(x) }):
		w.more++
	}
	if !w.timed {
		w.timed = true
		time.AfterFunc(toolFirst, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.timed = false
			w.show(time.Now())
		})
	}
}

// show prints what waits, if there is room for it.
func (w *refusedWatch) show(now time.Time) {
	if w.late = w.screen.busy(); w.late || w.ended {
		return
	}
	recent := 0
	for _, y := range w.told {
		if now.Sub(y.at) < sameAgain {
			recent++
		}
	}
	var text strings.Builder
	list := w.waiting.List
	if w.signs != nil {
		list = w.signs.Seen(list)
	}
	if w.saved != nil {
		list = w.saved(list)
	}
	for _, x := range list {
		if recent++; recent > maxLive {
			w.more++
			continue
		}
		text.WriteString("workshop: " + x.Text() + "\r\n")
		w.told = append(w.told, toldRefusal{x, now})
	}
	w.told = w.told[max(0, len(w.told)-maxTold):]
	w.waiting = app.Refusals{Worker: w.worker}
	if w.more > 0 && now.Sub(w.moreAt) >= sameAgain {
		log := ": `workshop firewall log --denied`"
		if w.oneOff {
			log = ""
		}
		fmt.Fprintf(&text, "workshop: and %d more refused%s\r\n", w.more, log)
		w.more, w.moreAt = 0, now
	}
	if text.Len() == 0 {
		return
	}
	begin, again := w.screen.redraw()
	if begin == "" && w.screen.text {
		begin = "\r\n"
	}
	if again == "" {
		w.screen.text = false
	}
	_, _ = io.WriteString(w.err, begin+w.pasteable(text.String())+again)
}

// end ends it: nothing is printed any more.
func (w *refusedWatch) end() {
	if w == nil {
		return
	}
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// hasTold reports whether a refusal was shown.
func (w *refusedWatch) hasTold(x app.Refusal) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.told, func(y toldRefusal) bool { return y.Says(x) })
}
