package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
)

// maxEventLine bounds a line of the guard's log, in bytes: the longest that it
// writes names all workers of a room. A longer one is skipped.
const maxEventLine = 256 << 10

// eventReader takes the guard's log as the engine gives it, and hands on the
// events in it. What isn't an event (READY, a crash's last words) is skipped.
// Names and addresses in events come from inside workers: whatever shows them
// to a person goes through [Printable].
type eventReader struct {
	// each gets the line as the guard wrote it, with its newline, and what it
	// says. An error ends the reading.
	each func(raw []byte, l events.Line) error
	// stamped: each line begins with the engine's time.
	stamped bool
	// first is the engine's time of the first line, an event or not; zero without stamped.
	first time.Time
	// position skips what was read before; nil: nothing. It needs stamped.
	position *logPosition

	rest []byte
	skip bool // until the end of a line that is too long
}

// Write implements [io.Writer].
func (r *eventReader) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part, after, ended := bytes.Cut(b, []byte("\n"))
		b = after
		if !r.skip && len(r.rest)+len(part) > maxEventLine {
			r.skip = true
		}
		if !r.skip {
			r.rest = append(r.rest, part...)
		}
		if !ended {
			break
		}
		line := r.rest
		if r.skip {
			line = nil
		}
		r.rest, r.skip = r.rest[:0], false
		if err := r.line(line); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (r *eventReader) line(line []byte) error {
	if r.stamped {
		stamp, rest, ok := bytes.Cut(line, []byte(" "))
		t, err := time.Parse(time.RFC3339Nano, string(stamp))
		if !ok || err != nil {
			return nil
		}
		if r.position != nil && !r.position.add(t, string(line)) {
			return nil
		}
		if r.first.IsZero() {
			r.first = t
		}
		line = rest
	}
	var l events.Line
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &l) != nil || l.Verdict == "" || l.Time.IsZero() {
		return nil
	}
	return r.each(append(slices.Clone(line), '\n'), l)
}

// readEvents reads the events in the guard's log.
func (r *Running) readEvents(ctx context.Context, o engine.LogsOptions, to *eventReader) error {
	o.Stdout, o.Stderr, o.Timestamps = to, io.Discard, to.stamped
	if o.Tail == "" {
		o.Tail = "all"
	}
	return r.Logs(ctx, r.Name, []string{compose.GuardService}, o)
}

// EventTarget is what an event is about, as a person writes it: "name:port",
// the name alone of a question to a name server.
func EventTarget(l events.Line) string {
	what := l.Name
	if what == "" {
		what = l.Address
	}
	if l.Protocol != "dns" && l.Port != 0 {
		what = net.JoinHostPort(what, strconv.Itoa(int(l.Port)))
	}
	if l.Protocol != "" && l.Protocol != "dns" && l.Protocol != "tcp" {
		what += "/" + l.Protocol
	}
	return Printable(what)
}

// ReasonText says a reason in words, the reason itself where there are none. host is
// what was asked for, and line the one that decided; either may be empty.
func ReasonText(reason, host, line string) string {
	switch reason {
	case firewall.ReasonAllowed:
		return "a line of network.allow has it"
	case firewall.ReasonOpen:
		return "network: open"
	case firewall.ReasonLearned:
		return "no line has it; let through because the room learns"
	case reasonOwn:
		return firewall.WhyOwn
	case events.ReasonMismatch:
		return "the worker dialled an address that isn't the name's; the name's own is used"
	case events.ReasonUnresolved:
		return "allowed, but no resolver of this machine has an address for it"
	case events.ReasonUnreachable:
		return "allowed, but it can't be connected to"
	case events.ReasonProxy:
		return "allowed, but the upstream proxy failed"
	case events.ReasonPanic:
		return "ended by an internal error of the guard"
	case events.ReasonPolicy:
		return "the policy was replaced"
	case events.ReasonLive:
		return "a live change"
	case events.ReasonKept:
		return "live denies and spent upload budgets can't be read or recorded"
	case events.ReasonLearning:
		return "rooms started or stopped learning"
	}
	if why := firewall.Why(reason, host, line); why != "" {
		return why
	}
	return Printable(reason)
}

// WhyText says in words why an event happened: by its reason, or as the guard says
// it.
func WhyText(l events.Line) string {
	if l.Why != "" && firewall.Why(l.Reason, l.Name, l.Rule) == "" {
		return Printable(l.Why)
	}
	return ReasonText(l.Reason, l.Name, l.Rule)
}

// GuardLog reads the guard's events.
type GuardLog struct {
	// Ends reads the ends of connections too, Denied only what was refused.
	Ends, Denied bool
	Worker       string // only events of its room; empty: of all
	Since        string // a time (RFC 3339) or a duration like 10m; empty: all
	Tail         int    // how many events from the end; below 0: all
	// Each gets an event: the line as the guard wrote it, with its newline, and
	// what it says. An error ends the reading.
	Each func(raw []byte, l events.Line) error

	count int
}

// Read reads what is in the log, and returns how many events Each was given.
func (g *GuardLog) Read(ctx context.Context, r *Running) (int, error) {
	err := g.read(ctx, r, engine.LogsOptions{Since: g.Since}, nil)
	return g.count, err
}

func (g *GuardLog) selects(l events.Line) bool {
	return (g.Ends || l.Verdict != events.End) && (!g.Denied || l.Verdict == events.Deny) && (g.Worker == "" || slices.Contains(l.Workers, g.Worker))
}

// read hands on what is in the log beyond a position; nil: all of it. The tail counts
// events that are selected, not the lines of the log.
func (g *GuardLog) read(ctx context.Context, r *Running, o engine.LogsOptions, p *logPosition) error {
	var tail []keptEvent
	n := g.Tail
	each := func(raw []byte, l events.Line) error {
		if n < 0 || o.Follow {
			g.count++
			return g.Each(raw, l)
		}
		if tail = append(tail, keptEvent{raw, l}); len(tail) > n {
			tail = tail[1:]
		}
		return nil
	}
	order := &eventOrder{each: each}
	if !o.Follow {
		each = order.add
	}
	reader := &eventReader{stamped: p != nil, position: p, each: func(raw []byte, l events.Line) error {
		if !g.selects(l) {
			return nil
		}
		return each(raw, l)
	}}
	err := r.readEvents(ctx, o, reader)
	if rest := order.end(); err == nil {
		err = rest
	}
	for _, k := range tail {
		g.count++
		if err := g.Each(k.raw, k.line); err != nil {
			return err
		}
	}
	return err
}

// keptEvent is a line of the guard, and what it says.
type keptEvent struct {
	raw  []byte
	line events.Line
}

// eventOrder hands events on in order of time: the guard writes what it merged at the
// end of the window, after what came later.
type eventOrder struct {
	each    func(raw []byte, l events.Line) error
	waiting []keptEvent // in order
}

// lateEvents is by how much events may be written too late.
const lateEvents = 2 * events.Window

func (o *eventOrder) add(raw []byte, l events.Line) error {
	at := len(o.waiting)
	for at > 0 && o.waiting[at-1].line.Time.After(l.Time) {
		at--
	}
	o.waiting = slices.Insert(o.waiting, at, keptEvent{raw, l})
	return o.until(o.waiting[len(o.waiting)-1].line.Time.Add(-lateEvents))
}

// until hands on what is older.
func (o *eventOrder) until(t time.Time) error {
	for len(o.waiting) > 0 && o.waiting[0].line.Time.Before(t) {
		k := o.waiting[0]
		o.waiting = o.waiting[1:]
		if err := o.each(k.raw, k.line); err != nil {
			return err
		}
	}
	return nil
}

func (o *eventOrder) end() error {
	if len(o.waiting) == 0 {
		return nil
	}
	return o.until(o.waiting[len(o.waiting)-1].line.Time.Add(1))
}

// ObserveGuard connects to and looks at a project that must have a guard, and the
// worker, if one is named; asked as in [Running.Look]. The caller closes it.
func (env *Env) ObserveGuard(ctx context.Context, t ProjectRef, worker string, asked bool) (*Running, engine.Observed, error) {
	e, seen, err := env.Observe(ctx, t, asked)
	if err != nil {
		return nil, seen, err
	}
	var names []string
	if worker != "" {
		names = []string{worker}
	}
	err = env.services(ctx, t, seen, names, compose.RoleWorker)
	if errors.Is(err, ErrNotUp) {
		err = Fail(CodeFailed, "project %s %w: its guard's log is gone", t.Name, ErrNotUp).Hint("`workshop up` begins a new log")
	}
	if err == nil && !slices.ContainsFunc(seen.Containers, func(c engine.Container) bool { return c.Service == compose.GuardService }) {
		err = Fail(CodeFailed, "project %s has no guard: none of its workers has a network", t.Name).
			Hint("%s", networkHint)
	}
	if err != nil {
		e.Close()
		return nil, seen, err
	}
	return e, seen, nil
}

// FollowEvents hands on the guard's events from a time on, and the next guard's too,
// until the context is done. What goes wrong is not said: who needs to know reads
// the log.
func (r *Running) FollowEvents(ctx context.Context, since time.Time, each func(events.Line)) {
	reader := &eventReader{each: func(_ []byte, l events.Line) error {
		if !l.Time.Before(since) {
			each(l)
		}
		return nil
	}}
	from := since
	for first := true; ctx.Err() == nil; first = false {
		err := r.readEvents(ctx, engine.LogsOptions{Follow: true, Since: from.Format(time.RFC3339Nano)}, reader)
		if _, none := errors.AsType[*engine.NotRunningError](err); none && first {
			return // no guard: no worker has a network
		}
		from = time.Now()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
