package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/workshop"
)

// forRun puts into refusals what opens them to a run: a flag, or where it has a file,
// which flags only narrow, the line for that.
func (t ProjectRef) forRun(list []Refusal) []Refusal {
	out := slices.Clone(list)
	for i := range out {
		x := &out[i]
		if place, ok := strings.CutPrefix(x.rule, commandLine+":"); ok {
			line, _ := strconv.Atoi(place)
			x.rule = cmp.Or(t.run.lines[line], x.rule)
		}
		flags, live := strings.CutPrefix(x.Command, "workshop firewall allow ")
		flags, _, _ = strings.Cut(flags, " --worker ")
		x.Command = ""
		if live && t.run.flags && !strings.HasSuffix(flags, " --ech") {
			x.Command = "workshop run --allow " + flags
		}
	}
	return out
}

// sayWhyRunFailed is [Env.SayWhyFailed] for a run.
func (env *Env) sayWhyRunFailed(ctx context.Context, r *Running, ran Ran, code int) {
	s, w := r.run, r.run.Worker(ran.Worker)
	unwritten := append(ran.Signs.paths(), r.notMade(ctx, s, w, ran.Dir, ran.Signs)...)
	places := s.readOnlyPlaces(w, ran.Dir, unwritten)
	full, isFull := ran.Signs.fullPlace(w, ran.Dir)
	switch {
	case code == 0:
		if HasNetwork(w) {
			env.sayUnnoticed(ctx, r, ran)
		}
	case code == codeKilled:
		env.hint("%d is SIGKILL: most often a program needed more than the memory limit of %s (%s)", code, w.Container.Resources.Memory.V, s.runKey("--memory", "resources.memory", w))
	case code > codeSignal && code <= codeSignal+maxSignal:
		// It was ended, as by Ctrl-C, and has not failed.
	case len(places) > 0:
		env.hint("%s", s.runReadOnly(w, places, env.Shown(r.File)))
	case isFull && s.flags:
		env.hint("%s is full (%s): `workshop run --print` writes a workshop.yaml, in which `%s` can be raised", full.path, full.size, full.key)
	case isFull:
		env.hint("%s is full (%s): raise `%s` in %s", full.path, full.size, full.key, env.Shown(r.File))
	case ran.Signs.sawNoProcess():
		env.hint("no process could be started: most often the limit of %d is reached (%s)", w.Container.Resources.PIDs.V, s.runKey("--pids", "resources.pids", w))
	case ran.Signs.sawNoIdentity():
		env.hint("a worker doesn't see your git configuration: pass a name on with `--env GIT_AUTHOR_NAME=… --env GIT_AUTHOR_EMAIL=…` and the same for GIT_COMMITTER")
	case ran.Signs.sawWorktree():
		env.hint("%s", hintWorktree)
	case !HasNetwork(w):
		if !ran.Signs.sawNetwork() {
			return
		}
		if s.flags {
			env.hint("the run has no network; name what it needs: `workshop run --allow HOST`")
		} else {
			env.hint("%s has no network; to allow what it needs, %s", ran.Worker, s.networkLine(w, env.Shown(r.File)))
		}
	default:
		env.sayDenials(ctx, r, ran)
	}
}

// runKey is what sets a limit of a run.
func (s *Source) runKey(flag, key string, w *workshop.Worker) string {
	if s.flags {
		return flag
	}
	return key + " of " + w.Name
}

// runReadOnly is [hintReadOnly] for a run.
func (s *Source) runReadOnly(w *workshop.Worker, places []readOnlyPlace, file string) string {
	x := places[0]
	if i := slices.IndexFunc(places, func(x readOnlyPlace) bool { return x.opens != "" }); i >= 0 {
		x = places[i]
	}
	if !s.flags {
		return strings.TrimSuffix(hintReadOnly([]readOnlyPlace{x}, file), ", then run `workshop up`")
	}
	m := workshop.MountAt(w.Container.Mounts, x.path)
	switch {
	case x.image || m == nil:
		return hintReadOnly([]readOnlyPlace{x}, file)
	case m.ReadWrite:
		return x.path + " is always read-only: programs of this machine run or obey what is in it (B8)"
	}
	arg := m.Source.V
	if m.Target.V != s.runTarget(m.Source.V) {
		arg += ":" + m.Target.V
	}
	return fmt.Sprintf("%s is read-only in this run; to let it write there: `workshop run --rw %s`", x.path, shellquote.Quote(arg))
}

// runTarget is where a run mounts a source of this directory without a word of it.
func (s *Source) runTarget(source string) string {
	if source == "." {
		return runWorkspace
	}
	return runWorkspace + "/" + strings.TrimPrefix(source, "./")
}

// sayRunDenials is [Env.sayDenials] for a run: what the guard refused is seen, and there
// is at least one.
func (env *Env) sayRunDenials(r *Running, worker string, seen []Refusal) {
	var refused, lines, flags []string
	for _, x := range seen[:min(len(seen), maxDenials)] {
		what := x.Target
		if why := x.shortWhy(); why != "" {
			what += " (" + why + ")"
		}
		refused = appendNew(refused, what)
		if allow, ok := strings.CutPrefix(x.Command, "workshop run "); ok {
			flags = appendNew(flags, allow)
		} else if !r.run.flags {
			lines = appendNew(lines, x.fileLine())
		}
	}
	text := "the guard refused " + strings.Join(refused, ", ")
	if more := len(seen) - maxDenials; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	switch to := r.run.listFor(worker); {
	case len(flags) > 0:
		text += "; to allow it: `workshop run " + strings.Join(flags, " ") + "`"
	case len(lines) > 0 && to.elsewhere != "":
		text += "; " + to.elsewhere
	case len(lines) > 0:
		text += "; a run gets no more than the file grants: add to " + to.String() + " in " + env.Shown(r.File) + ":\n- " + strings.Join(lines, "\n- ")
	}
	env.hint("%s", text)
}

// runError is a run's command that was not started, or lost.
func (env *Env) runError(ctx context.Context, err error, r *Running, worker, program string, workdir string) error {
	_, lost := errors.AsType[*wire.LostError](err)
	failed := sessionFailure(err, worker, program, workdir)
	if failed == nil {
		failed = startFailure(err, program, workdir)
	}
	if failed == nil {
		return EngineError(err)
	}
	failed.Hints = nil
	switch {
	case lost:
		seen, observeErr := r.lookAfterEnd(ctx, worker)
		for _, c := range seen.Containers {
			if why := c.WhyEnded(); observeErr == nil && c.Service == worker && why != "" {
				return Fail(CodeExecFailed, "%s was lost: %s", program, why)
			}
		}
	case failed.Code != 127:
	case strings.HasPrefix(program, "-"):
		failed.Hint("flags of run go before --, as in `workshop run -w /scratch -- ls`")
	case strings.ContainsAny(program, " \t"):
		failed.Hint("it is one word with blanks; a shell splits it: `workshop run -- sh -c %s`", shellquote.Quote(program))
	}
	return failed
}
