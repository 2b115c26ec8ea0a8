package app

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/session/audit"
	"github.com/llmdo/workshop/workshop"
)

// ToolsOptions say how the tools of a workshop are used.
type ToolsOptions struct {
	ApprovalOptions
	// NoUp starts nothing; Yes agrees to builds.
	NoUp, Yes bool
	// Person says that a person reads the results: they have no notes for a model of
	// what was refused, as events say it.
	Person bool
	// Later says that what calls showed is said by [Tools.SayLater].
	Later bool
}

// Tools is a workshop whose tools are used: what tools, call and package
// client have in common. The engine is asked when the first tool needs it.
type Tools struct {
	env   *Env
	asWas Env // env as it was before anything ran side by side: see [Tools.own]
	c     *Project
	names []string // the workers that may be needed: the one and its delegates; all where empty
	o     ToolsOptions

	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
	ready  chan struct{} // closed when the workers are up, or err says why not
	engine *Running
	down   *Project // what must be started, with facts; nil: nothing
	errMu  sync.Mutex
	err    error
	// compared is closed when what runs was compared with the files; nil: it is as
	// they say, or isn't there.
	compared chan struct{}
	// current returns the project with the facts of this machine, which take a while to
	// collect; nil: the engine wasn't asked yet.
	current atomic.Pointer[func() (*Project, error)]
	audit   *audit.Log

	guard      func() *guardLine // of the running workshop
	toldMu     sync.Mutex
	toldPerson map[string]bool   // what the person was told of calls
	later      []Event           // what they are told later
	unreached  map[string]string // why there was no way to a worker, by its name
}

// OpenTools opens the audit log of a project, unless a worker can have written what the
// project was loaded from and nobody accepted that. It touches no engine yet: see
// [Tools.Look] and [Tools.Begin]. names are the workers that may be needed, all
// where it is empty.
func (env *Env) OpenTools(ctx context.Context, c *Project, names []string, o ToolsOptions) (*Tools, error) {
	// Instructions, approvals and delegation go by the files, whatever runs (B8, B40, B42).
	if err := env.ReviewDefinition(ctx, c, nil); err != nil {
		return nil, err
	}
	if err := env.MayRun(ctx, c.Source); err != nil {
		return nil, err
	}
	log, err := env.auditLog(c)
	if err != nil {
		return nil, err
	}
	h := &Tools{
		env: env, asWas: *env, c: c, names: names, o: o, audit: log,
		ready: make(chan struct{}), toldPerson: map[string]bool{}, unreached: map[string]string{},
	}
	h.ctx, h.cancel = context.WithCancel(ctx)
	h.guard = sync.OnceValue(func() *guardLine { return newGuardLine(h.ctx, h.engine) })
	return h, nil
}

// WithDelegates is a worker with all that it may delegate to, also by others.
func (s *Source) WithDelegates(name string) []string {
	names := []string{name}
	for i := 0; i < len(names); i++ {
		w := s.Worker(names[i])
		if w == nil {
			continue
		}
		for _, to := range w.Definition.DelegatesTo {
			if !slices.Contains(names, to.Name) {
				names = append(names, to.Name)
			}
		}
	}
	return names
}

// Workshop is the file as it was when it was opened.
func (h *Tools) Workshop() *workshop.Workshop { return h.c.Workshop }

// CheckWorkers checks names of the caller against the workshop.
func (h *Tools) CheckWorkers(names []string) error { return h.c.CheckWorkers(names) }

// Host makes a Host for one worker, or with "" for all.
func (h *Tools) Host(worker, client string, asker approval.Asker, changed func()) (*session.Host, error) {
	gate, err := h.env.approvalGate(h.c.Workshop, h.c.Path, h.o.ApprovalOptions, asker)
	if err != nil {
		return nil, err
	}
	return session.Open(session.Config{
		Workshop: h.c.Workshop, Dial: h.dial, Client: client, Gate: gate, Audit: h.audit, Changed: changed,
		Watch: h.watch, ReadOnly: h.readOnly, Outdated: h.outdated,
		Warn: func(text string) { h.env.warn("%s", Printable(text)) },
	}, worker)
}

// outdated reports whether the files of a project that is up have changed since.
func (h *Tools) outdated() bool {
	paths, _ := h.env.changedFiles(h.c.Source)
	return len(paths) > 0 && h.down == nil
}

// Begin starts what isn't up, once, in the background. It goes on
// when the call that needed it is cancelled: the next one needs it too.
func (h *Tools) Begin() {
	h.once.Do(func() {
		go func() {
			defer close(h.ready)
			h.err = h.start(h.ctx)
		}()
	})
}

// start brings the workers up that aren't.
func (h *Tools) start(ctx context.Context) error {
	env := h.env
	if h.engine == nil {
		if err := h.Look(ctx); err != nil {
			return err
		}
	}
	if h.down != nil {
		if err := h.up(ctx, h.down); err != nil {
			return err
		}
	} else {
		h.compared = make(chan struct{})
		go func() {
			defer close(h.compared)
			h.warnChanged(ctx)
		}()
	}
	for _, name := range h.wanted() {
		env.sayLearning(ctx, h.engine, name)
	}
	return nil
}

// Look connects to the engine and finds out whether something must be started,
// and whether it can be. It changes nothing.
func (h *Tools) Look(ctx context.Context) error {
	env := h.env
	r, err := env.Connect(ctx, h.c.ProjectRef, env.Approver("workshop up", h.o.Yes))
	if err != nil {
		return err
	}
	h.engine = r
	current := sync.OnceValues(func() (*Project, error) { return r.collect(h.ctx, h.c) })
	h.current.Store(&current)
	seen, err := r.Look(ctx, false)
	if err != nil {
		return err
	}
	missing := h.missing(seen)
	switch {
	case len(missing) == 0 && env.frozen(h.c.Source):
		return h.refuseChanged(ctx)
	case len(missing) == 0:
		return nil
	case h.o.NoUp && len(seen.Containers) == 0:
		return notUp(h.c.ProjectRef)
	case h.o.NoUp:
		return Fail(CodeFailed, "project %s %w completely: %s not usable", h.c.Name, ErrNotUp, AreText(missing)).Hint("start it with `workshop up`")
	}
	if err := env.Elsewhere(ctx, r); err != nil {
		return err
	}
	if h.down, err = env.Prepare(ctx, r, h.c); err != nil {
		return err
	}
	prepared := func() (*Project, error) { return h.down, nil }
	h.current.Store(&prepared)
	return nil
}

// up is the command of that name without its summary.
func (h *Tools) up(ctx context.Context, ready *Project) error {
	env := h.env
	if !env.isNoted(h.c.Source) {
		env.problems(h.c.Source)
	}
	env.say("workshop: starting %s", h.c.Name)
	env.SayChosen(h.engine.Chosen)
	ch, err := env.Change(ctx, h.c.Name)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	return ch.Up(ctx, h.engine, h.c, ready, h.names, UpOptions{Implicit: true})
}

// wanted are the names of the workers that may be needed.
func (h *Tools) wanted() []string {
	if len(h.names) > 0 {
		return h.names
	}
	all := make([]string, len(h.c.Workshop.Workers))
	for i := range h.c.Workshop.Workers {
		all[i] = h.c.Workshop.Workers[i].Name
	}
	return all
}

// missing are the wanted workers that don't run, weren't compared since their start or are in
// files that are gone, or have no room, an earlier one, or no guard.
func (h *Tools) missing(seen engine.Observed) (names []string) {
	for _, name := range h.wanted() {
		runs := slices.ContainsFunc(seen.Containers, func(c engine.Container) bool {
			return c.Service == name && c.State == "running" && !c.NotCompared && len(c.Replaced) == 0
		})
		if !runs || len(Stopped(seen, name))+len(Stale(seen, name)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// readOnly is the Host's list of what is mounted read-only inside the read-write mounts
// of a worker (B8). It is of the directories as they are now: [Tools.warnChanged] says
// where the worker was started with others.
func (h *Tools) readOnly(worker string) (targets []string) {
	w, current := h.c.Worker(worker), h.current.Load()
	if w == nil || current == nil || !slices.ContainsFunc(w.Container.Mounts, func(m workshop.Mount) bool { return m.ReadWrite }) {
		return nil
	}
	ready, err := (*current)()
	if err != nil || ready.Compiled == nil || ready.Compiled.Project == nil {
		return nil // the comparison says so
	}
	targets = heldTargets(ready, w)
	slices.Sort(targets)
	return targets
}

// Close ends what is left; the workshop stays up.
func (h *Tools) Close() {
	h.once.Do(func() { close(h.ready) })
	h.waitCompared()
	h.cancel()
	select {
	case <-h.ready:
	case <-time.After(closeWait):
		return // the engine doesn't answer; the process ends
	}
	if h.engine != nil {
		h.engine.Close()
	}
	if h.audit != nil {
		if err := h.audit.Close(); err != nil {
			h.env.warn("audit log: %v", err)
		}
	}
}

// waitCompared lets the warning of a call that was fast be said. As a rule the
// comparison takes less time than the call.
func (h *Tools) waitCompared() {
	select {
	case <-h.ready:
		if h.compared != nil && h.ctx.Err() == nil {
			select {
			case <-h.compared:
			case <-h.ctx.Done():
			case <-time.After(compareWait):
			}
		}
	default: // an interrupted start
	}
}

// compareWait is how much later a call may end to say that files changed.
const compareWait = 500 * time.Millisecond

// closeWait is how long an interrupted start may take to stop.
const closeWait = 5 * time.Second

// auditLog opens the log of calls and decisions of a project.
func (env *Env) auditLog(c *Project) (*audit.Log, error) {
	path := env.auditPath(c.Name)
	if path == "" {
		return nil, Fail(CodeFailed, "no directory for the audit log of calls: neither HOME nor XDG_STATE_HOME is set")
	}
	log, err := audit.Open(path, c.Name, facts.SecretValues(c.Workshop, c.Dir, env.Lookup))
	if err != nil {
		return nil, Fail(CodeFailed, "audit log: %w", err).Hint("each call is written down before it runs")
	}
	return log, nil
}

// auditPath is where the calls of a project are written down.
func (env *Env) auditPath(project string) string {
	dir := env.StateDir()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "audit", project+".jsonl")
}
