package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

const (
	// codeNotFound is that of shells and of exec where a program isn't found.
	codeNotFound = 127
	// codeSignal and the number of a signal are what a command ends with that
	// the signal ended.
	codeSignal = 128
	codeKilled = codeSignal + 9
	// maxSignal is the highest number of a signal: signal(7).
	maxSignal = 64
)

// maxDenials are named after a failed command; the log has the others.
const maxDenials = 5

// Ran is a command that ran in a worker for a person.
type Ran struct {
	Worker  string
	Dir     string // where it ran; empty: in the worker's directory
	Started time.Time
	// Signs are those of its output; nil: it wasn't read.
	Signs *Signs
	// Shown reports whether a refusal was shown while it ran.
	Shown func(Refusal) bool
}

// SayRefused says at the end of a shell in a worker what was refused since its
// start, except for what was shown while it ran.
func (env *Env) SayRefused(ctx context.Context, r *Running, ran Ran) {
	if _, w := env.quietWorker(ctx, r, ran.Worker); w != nil && HasNetwork(w) {
		env.sayDenials(ctx, r, ran)
	}
}

// SayWhyFailed says in one hint what of a worker's boundary made a command fail in
// it with an exit code, where that was seen: by its output, the code, the engine or
// the guard. Of one that succeeded it names what the guard refused, if the guard's own
// sentence is in the output. It is silent where the file can't be read: the command's
// own failure is what matters.
func (env *Env) SayWhyFailed(ctx context.Context, r *Running, ran Ran, code int) {
	if ran.Signs == nil {
		ran.Signs = &Signs{}
	}
	if code == 0 && !ran.Signs.sawGuard() {
		return
	}
	s, w := env.quietWorker(ctx, r, ran.Worker)
	if w == nil {
		return
	}
	if r.run != nil {
		env.sayWhyRunFailed(ctx, r, ran, code)
		return
	}
	file := env.Shown(r.File)
	unwritten := append(ran.Signs.paths(), r.notMade(ctx, s, w, ran.Dir, ran.Signs)...)
	readOnly := hintReadOnly(s.readOnlyPlaces(w, ran.Dir, unwritten), file)
	full, isFull := ran.Signs.fullPlace(w, ran.Dir)
	switch {
	case code == 0:
		if HasNetwork(w) {
			env.sayUnnoticed(ctx, r, ran)
		}
	case code == codeKilled:
		held := ran.Signs.heldText(w)
		if held != "" {
			held = "; of it, " + held
		}
		env.hint("%d is SIGKILL: most often a program needed more than %s%s", code, limitText(w), held)
	case code > codeSignal && code <= codeSignal+maxSignal:
		// It was ended, as by Ctrl-C, and has not failed.
	case readOnly != "":
		env.hint("%s", readOnly)
	case isFull:
		env.hint("%s", full.hint(ran.Worker, file))
	case ran.Signs.sawNoProcess():
		env.hint("%s", hintPIDs(w))
	case ran.Signs.sawNoIdentity():
		env.hint("%s", hintIdentity(file))
	case ran.Signs.sawWorktree():
		env.hint("%s", hintWorktree)
	case code == codeNotFound && env.hintOnHost(s, w, ran.Signs.notFound()...) != "":
		env.hint("%s", env.hintOnHost(s, w, ran.Signs.notFound()...))
	case !HasNetwork(w):
		if ran.Signs.sawNetwork() {
			env.hint("%s has no network; to allow what it needs, %s", ran.Worker, s.networkLine(w, file))
		}
	case env.sayStopped(ctx, r, ran.Worker):
	default:
		env.sayDenials(ctx, r, ran)
	}
}

// quietWorker is the worker as the file has it, with the file; nil where that can't be
// read, or nobody reads what is said.
func (env *Env) quietWorker(ctx context.Context, r *Running, worker string) (*Source, *workshop.Worker) {
	if env.Quiet || r.File == "" {
		return nil, nil
	}
	if r.run != nil {
		return r.run, r.run.Worker(worker)
	}
	s, err := env.Read(ctx, r.File)
	if err != nil || s.Workshop == nil {
		return nil, nil
	}
	return s, s.Worker(worker)
}

// sayStopped says and reports whether a worker's room or guard isn't running, or
// the room was restarted.
func (env *Env) sayStopped(ctx context.Context, r *Running, worker string) bool {
	seen, err := r.Observe(ctx, r.Name)
	if err != nil {
		return false
	}
	text := stoppedText(seen, worker)
	if text != "" {
		env.hint("%s", text)
	}
	return text != ""
}

// stoppedText says which part of a worker's network doesn't run; empty: it does.
func stoppedText(seen engine.Observed, worker string) string {
	if stopped := Stopped(seen, worker); len(stopped) > 0 {
		return "the " + strings.Join(stopped, " and the ") + " of " + worker + " is not running, so it has no network: `workshop up` repairs it"
	}
	if stale := Stale(seen, worker); len(stale) > 0 {
		return StaleText(stale)
	}
	return ""
}

// hintPIDs says why a program of a worker could start no process.
func hintPIDs(w *workshop.Worker) string {
	return fmt.Sprintf("no process could be started: most often the limit of %d is reached (resources.pids of %s)", w.Container.Resources.PIDs.V, w.Name)
}

// hintIdentity says how git in a worker gets a name to commit in.
func hintIdentity(file string) string {
	return "a worker doesn't see your git configuration: to commit in your name, write `git_author: host` below `container:` in " + file + ", then run `workshop up`"
}

// hintWorktree says why git finds no repository in a linked worktree.
const hintWorktree = "the repository of this worktree isn't in the worker; `workshop up` says why: commit on this machine, or work in a clone for commits inside: `git clone . ../CLONE` (docs/recipes/git.md)"

// StaleText says what became of workers in a room that was restarted.
func StaleText(workers []string) string {
	return "the room of " + WorkersText(workers) + " was restarted, which leaves no network: `workshop up` repairs it"
}

// sayUnnoticed says in a line each what the guard refused to a command that
// succeeded.
func (env *Env) sayUnnoticed(ctx context.Context, r *Running, ran Ran) {
	seen := slices.DeleteFunc(r.failuresSince(ctx, ran.Worker, ran.Started).refused, ran.Shown)
	for _, x := range env.AgainstFile(ctx, r.ProjectRef, ran.Worker, seen[:min(len(seen), maxDenials)]) {
		env.say("workshop: %s", x.Text())
	}
}

// sayDenials names in one hint what the guard refused to a worker while a command
// ran, and what would allow it: the lines for the file, and the commands for what
// runs. What was shown live isn't named again.
func (env *Env) sayDenials(ctx context.Context, r *Running, ran Ran) {
	failed := r.failuresSince(ctx, ran.Worker, ran.Started)
	seen := slices.DeleteFunc(failed.refused, ran.Shown)
	if len(seen) == 0 {
		if hint := failed.hintUnreachable(); hint != "" {
			env.hint("%s", hint)
		}
		return
	}
	if ran.Signs != nil {
		seen = ran.Signs.seen(seen)
	}
	seen = env.AgainstFile(ctx, r.ProjectRef, ran.Worker, seen)
	if r.run != nil {
		env.sayRunDenials(r, ran.Worker, seen)
		return
	}
	var refused, lines, commands, saved []string
	var reload string
	for _, x := range seen[:min(len(seen), maxDenials)] {
		what := x.Target
		if why := x.shortWhy(); why != "" {
			what += " (" + why + ")"
		}
		refused = appendNew(refused, what)
		if x.saved != "" {
			saved, reload = appendNew(saved, x.Target), x.saved
			continue
		}
		lines = appendNew(lines, x.fileLine())
		commands = appendNew(commands, x.Command)
	}
	text := "the guard refused " + strings.Join(refused, ", ")
	if more := len(seen) - maxDenials; more > 0 {
		text += fmt.Sprintf(" and %d more (`workshop firewall log --denied`)", more)
	}
	if len(saved) > 0 {
		text += "; " + env.Shown(r.File) + " allows " + WorkersText(saved) + " by now: `" + reload + "` gives it to the guard"
	}
	if to := seen[0].list; len(lines) > 0 && to.elsewhere != "" {
		text += "; " + to.elsewhere
	} else if len(lines) > 0 {
		text += "; to allow it, add to " + to.String() + " in " + env.Shown(r.File) + ":\n- " + strings.Join(lines, "\n- ")
	}
	if len(commands) > 0 {
		text += "\nor allow it in what runs now: `" + strings.Join(commands, "`\n`") + "`"
	}
	if slices.ContainsFunc(seen, func(x Refusal) bool {
		return x.Reason == firewall.ReasonDenied && strings.HasPrefix(x.rule, firewall.LiveLine)
	}) {
		text += "\n`workshop firewall show` lists live changes, `workshop firewall reload --reset` drops them"
	}
	env.hint("%s", text)
}

// appendNew appends what isn't empty and isn't there yet.
func appendNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
