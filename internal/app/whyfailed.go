package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

const (
	// codeSignal and the number of a signal are what a command ends with that
	// the signal ended.
	codeSignal = 128
	codeKilled = codeSignal + 9
)

// maxDenials are named after a failed command; the log has the others.
const maxDenials = 5

// SayRefused says at the end of a shell in a worker what was refused since its
// start, except for what was shown while it ran.
func (env *Env) SayRefused(ctx context.Context, r *Running, worker string, since time.Time, shown func(Refusal) bool) {
	if w := env.quietWorker(ctx, r, worker); w != nil && HasNetwork(w) {
		env.sayDenials(ctx, r, worker, since, shown)
	}
}

// SayWhyFailed says what of a worker's boundary may be why a command failed in it with
// an exit code, except for refusals that were shown since it was started. It is silent where the file can't be read: the command's own failure is what
// matters.
func (env *Env) SayWhyFailed(ctx context.Context, r *Running, worker string, code int, since time.Time, shown func(Refusal) bool) {
	w := env.quietWorker(ctx, r, worker)
	switch {
	case w == nil:
	case code == codeKilled:
		env.hint("%d is SIGKILL: most often a program needed more than the memory limit of %s (resources.memory of %s)",
			code, w.Container.Resources.Memory.V, worker)
	case code > codeSignal:
		// It was ended, as by Ctrl-C, and has not failed.
	case !HasNetwork(w):
		env.hint("%s has no network; if that is why it failed, allow what it needs in %s: `network: {mode: restricted, allow: [HOST]}`",
			worker, env.Shown(r.File))
	case env.sayStopped(ctx, r, worker):
	default:
		env.sayDenials(ctx, r, worker, since, shown)
	}
}

// quietWorker is the worker as the file has it; nil where that can't be read, or
// nobody reads what is said.
func (env *Env) quietWorker(ctx context.Context, r *Running, worker string) *workshop.Worker {
	if env.Quiet || r.File == "" {
		return nil
	}
	s, err := env.Read(ctx, r.File)
	if err != nil || s.Workshop == nil {
		return nil
	}
	return s.Worker(worker)
}

// sayStopped says and reports whether a worker's room or guard isn't running, or
// the room was restarted.
func (env *Env) sayStopped(ctx context.Context, r *Running, worker string) bool {
	seen, err := r.Observe(ctx, r.Name)
	if err != nil {
		return false
	}
	stopped := Stopped(seen, worker)
	for _, down := range stopped {
		env.hint("the %s doesn't run, so %s has no network: `workshop up` repairs it", down, worker)
	}
	stale := Stale(seen, worker)
	if len(stale) > 0 {
		env.hint("%s", StaleText(stale))
	}
	return len(stopped)+len(stale) > 0
}

// StaleText says what became of workers in a room that was restarted.
func StaleText(workers []string) string {
	return "the room of " + WorkersText(workers) + " was restarted, which leaves no network: `workshop up` repairs it"
}

// sayDenials names what the guard refused to a worker since a time, and what
// would allow it: the line for the file, and the command for what runs. What was
// shown live isn't named again.
func (env *Env) sayDenials(ctx context.Context, r *Running, worker string, since time.Time, shown func(Refusal) bool) {
	seen := slices.DeleteFunc(r.refusedSince(ctx, worker, since), shown)
	if len(seen) == 0 {
		return
	}
	var refused, lines, commands, why []string
	for i, x := range seen {
		what := x.Target
		if x.Reason != firewall.ReasonName && x.Reason != firewall.ReasonPort {
			what += " (" + Printable(x.Reason)
			if x.Reason == firewall.ReasonDenied && x.rule != "" {
				what += " by " + x.deniedBy()
			}
			what += ")"
		}
		if i < maxDenials {
			refused = appendNew(refused, what)
			lines = appendNew(lines, x.Line)
			commands = appendNew(commands, x.Command)
			if what != x.Target && firewall.Why(x.Reason) != "" {
				why = appendNew(why, x.Reason)
			}
		}
	}
	text := "meanwhile the guard refused " + strings.Join(refused, ", ")
	if more := len(seen) - maxDenials; more > 0 {
		text += fmt.Sprintf(" and %d more (`workshop firewall log --denied`)", more)
	}
	if len(lines) > 0 {
		text += "; to allow it, add to network.allow in " + env.Shown(r.File) + ":\n- " + strings.Join(lines, "\n- ")
	}
	env.hint("%s", text)
	if len(commands) > 0 {
		env.hint("or allow it at once, in what runs now:\n`%s`", strings.Join(commands, "`\n`"))
	}
	if slices.ContainsFunc(seen, func(x Refusal) bool {
		return x.Reason == firewall.ReasonDenied && strings.HasPrefix(x.rule, firewall.LiveLine)
	}) {
		env.hint("`workshop firewall show` lists live changes, `workshop firewall reload --reset` drops them")
	}
	for _, reason := range why {
		env.hint("%s: %s", reason, firewall.Why(reason))
	}
}

// appendNew appends what isn't empty and isn't there yet.
func appendNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
