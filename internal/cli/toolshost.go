package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/session/audit"
)

// toolsOptions are the flags of tools and call.
type toolsOptions struct {
	approvalFlags
	noUp, yes bool
}

func (o *toolsOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.approveAll, "approve-all", false, "run what the workshop asks about without asking")
	f.BoolVar(&o.strict, "strict", false, "refuse what the workshop asks about without asking")
	f.BoolVar(&o.noUp, "no-up", false, "don't start a workshop that isn't up")
	f.BoolVarP(&o.yes, "yes", "y", false, "build images without asking, where it must be started")
}

func (o *toolsOptions) check(cmd *cobra.Command) error {
	if o.approveAll && o.strict {
		return usageError(cmd, "--approve-all and --strict exclude each other")
	}
	return nil
}

// toolsHost is a workshop whose tools are used: what tools, call and package
// client have in common. The engine is asked when the first tool needs it.
type toolsHost struct {
	a     *program
	c     *compiled
	names []string // the workers that may be needed: the one and its delegates; all where empty
	o     toolsOptions
	again string // the command line that a hint about builds offers

	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
	ready  chan struct{} // closed when the workers are up, or err says why not
	engine engine.Engine
	down   *compiled // what must be started, with facts; nil: nothing
	err    error
	// compared is closed when what runs was compared with the files; nil: it is as
	// they say, or isn't there.
	compared chan struct{}
	audit    *audit.Log
}

// openTools reads the workshop and opens the audit log. It touches no engine
// yet: see [toolsHost.look] and [toolsHost.begin].
func (a *program) openTools(ctx context.Context, cmd *cobra.Command, worker string, o toolsOptions) (*toolsHost, error) {
	c, err := a.compile(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	if worker != "" {
		if err := c.workers(cmd, []string{worker}); err != nil {
			return nil, err
		}
		names = c.withDelegates(worker)
	}
	return a.openCompiled(ctx, c, names, o, commandLine(cmd, "up"))
}

func (a *program) openCompiled(ctx context.Context, c *compiled, names []string, o toolsOptions, again string) (*toolsHost, error) {
	log, err := a.auditLog(c)
	if err != nil {
		return nil, err
	}
	h := &toolsHost{
		a: a, c: c, names: names, o: o, again: again, audit: log,
		ready: make(chan struct{}),
	}
	h.ctx, h.cancel = context.WithCancel(ctx)
	return h, nil
}

// withDelegates is a worker with all that it may delegate to, also by others.
func (s *source) withDelegates(name string) []string {
	names := []string{name}
	for i := 0; i < len(names); i++ {
		w := s.worker(names[i])
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

// host makes a Host for one worker, or with "" for all.
func (h *toolsHost) host(worker, client string, asker approval.Asker, changed func()) (*session.Host, error) {
	gate, err := h.a.approvalGate(h.c.w, filepath.Join(h.c.dir, h.c.file), h.o.approvalFlags, asker)
	if err != nil {
		return nil, err
	}
	return session.Open(session.Config{
		Workshop: h.c.w, Dial: h.dial, Client: client, Gate: gate, Audit: h.audit, Changed: changed,
		Warn: func(text string) { h.a.warn("%s", printable(text)) },
	}, worker)
}

// dial is the Host's [session.Dialer]. What isn't up yet is waited for.
func (h *toolsHost) dial(ctx context.Context, worker string) (io.ReadWriteCloser, error) {
	h.begin()
	select {
	case <-h.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if h.err != nil {
		return nil, told(h.err)
	}
	t := h.c.target()
	conn, err := h.engine.Session(ctx, t.project, worker, t.dir)
	return conn, told(engineError(err))
}

// toldError is a failure for a client that sees its text alone.
type toldError struct{ *app.Failure }

func told(err error) error {
	if f, ok := errors.AsType[*app.Failure](err); ok && f.Err != nil {
		return toldError{f}
	}
	return err
}

func (e toldError) Error() string {
	if len(e.AllHints()) == 0 {
		return e.Failure.Error()
	}
	return e.Failure.Error() + " (" + strings.Join(e.AllHints(), "; ") + ")"
}

func (e toldError) Unwrap() error { return e.Failure }

// begin starts what isn't up, once, beside whatever else goes on. It goes on
// when the call that needed it is cancelled: the next one needs it too.
func (h *toolsHost) begin() {
	h.once.Do(func() {
		go func() {
			defer close(h.ready)
			h.err = h.start(h.ctx)
		}()
	})
}

// start brings the workers up that aren't.
func (h *toolsHost) start(ctx context.Context) error {
	a, t := h.a, h.c.target()
	if h.engine == nil {
		if err := h.look(ctx); err != nil {
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
		a.sayLearning(ctx, h.engine, t, name)
	}
	return nil
}

// look connects to the engine and finds out whether something must be started,
// and whether it can be. It changes nothing.
func (h *toolsHost) look(ctx context.Context) error {
	a, t := h.a, h.c.target()
	e, err := a.connect(ctx, a.approver(h.again, h.o.yes))
	if err != nil {
		return err
	}
	h.engine = e
	seen, err := a.look(ctx, e, t, false)
	if err != nil {
		return err
	}
	missing := h.missing(seen)
	switch {
	case len(missing) == 0:
		return nil
	case h.o.noUp && len(seen.Containers) == 0:
		return notUp(t)
	case h.o.noUp:
		return app.Fail(app.CodeFailed, "project %s %w as a whole: %s not usable", t.project, errNotUp, verb(missing)).Hint("start it with `workshop up`")
	}
	if err := a.elsewhere(h.c); err != nil {
		return err
	}
	h.down, err = a.prepare(ctx, e, h.c, false)
	return err
}

// up is the command of that name without its summary.
func (h *toolsHost) up(ctx context.Context, ready *compiled) error {
	a := h.a
	a.say("workshop: starting %s", h.c.project)
	a.sayChosen()
	unlock, err := a.lock(ctx, h.c.project)
	if err != nil {
		return err
	}
	defer unlock()
	return a.start(ctx, h.engine, h.c, ready.compiled.Facts.ToCreate, h.names, upOptions{yes: h.o.yes, implicit: true})
}

// wanted are the names of the workers that may be needed.
func (h *toolsHost) wanted() []string {
	if len(h.names) > 0 {
		return h.names
	}
	all := make([]string, len(h.c.w.Workers))
	for i := range h.c.w.Workers {
		all[i] = h.c.w.Workers[i].Name
	}
	return all
}

// missing are the wanted workers that don't run, or have no room or guard.
func (h *toolsHost) missing(seen engine.Observed) (names []string) {
	for _, name := range h.wanted() {
		runs := slices.ContainsFunc(seen.Containers, func(c engine.Container) bool {
			return c.Service == name && c.State == "running"
		})
		if !runs || len(stopped(seen, name)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// warnChanged compares what runs with the files. The session goes on either
// way: what is offered is checked by both, and each can only narrow the other.
func (h *toolsHost) warnChanged(ctx context.Context) {
	a := h.a
	plan, err := h.differs(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.warn("can't tell whether %s is what runs: %v", a.shown(h.c.target().file), err)
	case !plan.Empty():
		a.warn("%s, this program, or the directories that are read-only in a mount (B8) have changed since `up`: what runs is as it was then", a.shown(h.c.target().file))
		a.printFailure((&app.Failure{}).Hint("`workshop up` applies it, `workshop up --dry-run` shows it"))
	}
}

// differs is what `up` would do with the wanted workers.
func (h *toolsHost) differs(ctx context.Context) (*engine.Plan, error) {
	a := h.a
	info, err := h.engine.Info(ctx)
	if err != nil {
		return nil, err
	}
	o := a.factsOptions(h.c, info)
	if namer, ok := h.engine.(initNamer); ok {
		if o.InitImage, o.InitVolume, err = namer.InitNames(ctx); err != nil {
			return nil, err
		}
	}
	// What stands against a start does not matter here.
	ready, _ := withFacts(ctx, h.c, o)
	d := engine.Desired{Compiled: ready.compiled, Only: h.names, Pulled: true}
	if d.Builds, err = buildHashes(ctx, d.Compiled); err != nil {
		return nil, err
	}
	seen, err := h.engine.Observe(ctx, h.c.project, engine.DesiredImages(d)...)
	if err != nil {
		return nil, err
	}
	return engine.PlanUp(d, seen)
}

// close ends what is left; the workshop stays up.
func (h *toolsHost) close() {
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
			h.a.warn("audit log: %v", err)
		}
	}
}

// waitCompared lets the warning of a call that was fast be said. As a rule the
// comparison takes less time than the call.
func (h *toolsHost) waitCompared() {
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
func (a *program) auditLog(c *compiled) (*audit.Log, error) {
	path := a.auditPath(c.project)
	if path == "" {
		return nil, app.Fail(app.CodeFailed, "no directory for the audit log of calls: neither HOME nor XDG_STATE_HOME is set")
	}
	log, err := audit.Open(path, c.project, facts.SecretValues(c.w, c.dir, a.Lookup))
	if err != nil {
		return nil, app.Fail(app.CodeFailed, "audit log: %w", err).Hint("each call is written down before it runs")
	}
	return log, nil
}

// auditPath is where the calls of a project are written down.
func (a *program) auditPath(project string) string {
	dir := a.stateDir()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "audit", project+".jsonl")
}

// terminalAsker asks the person at the terminal that controls this process, also
// where the input is piped; nil where there is none.
func (a *program) terminalAsker() approval.Asker {
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		return &approval.Terminal{In: tty, Out: tty} // open until the process ends
	}
	if in, ok := a.In.(*os.File); ok && isTerminal(in) {
		return &approval.Terminal{In: in, Out: a.Err}
	}
	return nil
}
