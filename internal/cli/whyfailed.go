package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
)

const (
	// codeSignal and the number of a signal are what a command ends with that
	// the signal ended.
	codeSignal = 128
	codeKilled = codeSignal + 9
)

// maxDenials are named after a failed command; the log has the others.
const maxDenials = 5

// refusedMeanwhile says at the end of a shell what was refused since its start,
// but for what was shown while it ran.
func (a *program) refusedMeanwhile(ctx context.Context, e *app.Running, worker string, since time.Time, live *refusedWatch) {
	if a.Quiet || e.File == "" {
		return
	}
	if s, err := a.Read(ctx, e.File); err != nil || s.Workshop == nil || s.Worker(worker) == nil || s.Worker(worker).Container.Network.Mode.V == firewall.None {
		return
	}
	hints := &app.Failure{}
	a.denialHints(ctx, e, worker, since, live, hints)
	a.printFailure(hints)
}

// whyFailed says what of a worker's boundary may be why a command failed in it.
// It is silent where the file can't be read: the command's own failure is what
// matters.
func (a *program) whyFailed(ctx context.Context, e *app.Running, worker string, code int, since time.Time, live *refusedWatch) {
	if a.Quiet || e.File == "" {
		return
	}
	s, err := a.Read(ctx, e.File)
	if err != nil || s.Workshop == nil {
		return
	}
	w := s.Worker(worker)
	if w == nil {
		return
	}
	hints := &app.Failure{}
	switch {
	case code == codeKilled:
		hints.Hint("%d is SIGKILL: most often a program needed more than the memory limit of %s (resources.memory of %s)",
			code, w.Container.Resources.Memory.V, worker)
	case code > codeSignal:
		// It was ended, as by Ctrl-C, and has not failed.
	case w.Container.Network.Mode.V == firewall.None:
		hints.Hint("%s has no network; if that is why it failed, allow what it needs in %s: `network: {mode: restricted, allow: [HOST]}`",
			worker, a.Shown(e.File))
	case a.networkDown(ctx, e, worker, hints):
	default:
		a.denialHints(ctx, e, worker, since, live, hints)
	}
	a.printFailure(hints)
}

// networkDown tells whether a worker's room or guard isn't running, and says so.
func (a *program) networkDown(ctx context.Context, e *app.Running, worker string, f *app.Failure) bool {
	seen, err := e.Observe(ctx, e.Name)
	if err != nil {
		return false
	}
	for _, down := range app.Stopped(seen, worker) {
		f.Hint("the %s doesn't run, so %s has no network: `workshop up` repairs it", down, worker)
	}
	return len(f.Hints) > 0
}

// denialHints names what the guard refused to a worker since a time, and what
// would allow it: the line for the file, and the command for what runs. What was
// shown live isn't named again.
func (a *program) denialHints(ctx context.Context, e *app.Running, worker string, since time.Time, live *refusedWatch, f *app.Failure) {
	seen := slices.DeleteFunc(a.refusedSince(ctx, e, worker, since), live.hasTold)
	if len(seen) == 0 {
		return
	}
	var refused, lines, commands, why []string
	for i, x := range seen {
		what := x.target
		if x.reason != firewall.ReasonName && x.reason != firewall.ReasonPort {
			what += " (" + app.Printable(x.reason)
			if x.reason == firewall.ReasonDenied && x.rule != "" {
				what += " by " + x.deniedBy()
			}
			what += ")"
		}
		if i < maxDenials {
			refused = appendNew(refused, what)
			lines = appendNew(lines, x.line)
			commands = appendNew(commands, x.command)
			if what != x.target && firewall.Why(x.reason) != "" {
				why = appendNew(why, x.reason)
			}
		}
	}
	text := "meanwhile the guard refused " + strings.Join(refused, ", ")
	if more := len(seen) - maxDenials; more > 0 {
		text += fmt.Sprintf(" and %d more (`workshop firewall log --denied`)", more)
	}
	if len(lines) > 0 {
		text += "; to allow it, add to network.allow in " + a.Shown(e.File) + ":\n- " + strings.Join(lines, "\n- ")
	}
	f.Hint("%s", text)
	if len(commands) > 0 {
		f.Hint("or allow it at once, in what runs now:\n`%s`", strings.Join(commands, "`\n`"))
	}
	if slices.ContainsFunc(seen, func(x refusal) bool {
		return x.reason == firewall.ReasonDenied && strings.HasPrefix(x.rule, firewall.LiveLine)
	}) {
		f.Hint("`workshop firewall show` lists live changes, `workshop firewall reload --reset` drops them")
	}
	for _, reason := range why {
		f.Hint("%s: %s", reason, firewall.Why(reason))
	}
}

// appendNew appends what isn't empty and isn't there yet.
func appendNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// refusedSince reads what was refused to a worker since a time. The guard writes
// what is new at once, and joins what repeats a line of the last second: only
// where there is such a line, it is asked for its state, before which it writes
// all that it has.
func (a *program) refusedSince(ctx context.Context, e *app.Running, worker string, since time.Time) []refusal {
	for look := 1; ; look++ {
		found, repeats := refusals{worker: worker}, false
		r := &eventReader{each: func(_ []byte, l events.Line) error {
			if l.Time.Before(since) {
				repeats = repeats || l.Verdict == events.Deny && slices.Contains(l.Workers, worker)
			} else {
				found.add(l)
			}
			return nil
		}}
		began := time.Now()
		o := engine.LogsOptions{Since: since.Add(-joinTime).Format(time.RFC3339Nano)}
		err := readEvents(ctx, e, e.Name, o, r)
		switch {
		case err != nil || ctx.Err() != nil || look == looks || look > 1 && len(found.list) > 0 || !repeats && len(found.list) > 0:
			return found.list // the log is no reason to fail
		case repeats && look == 1:
			<-e.AskGuard(ctx)
			fallthrough
		default:
			// A busy engine takes longer to show a line, as it does to answer.
			time.Sleep(max(onItsWay, time.Since(began)))
		}
	}
}

const (
	// joinTime is how long the guard joins equal events at most.
	joinTime = events.Window * 3 / 2
	// onItsWay is how long a line that the guard has written may take until the
	// engine shows it.
	onItsWay = 50 * time.Millisecond
	// looks are how often the log is read for what may be on its way.
	looks = 3
)
