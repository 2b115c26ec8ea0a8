package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// RunOptions are a run: one command in a worker of its own, which is removed afterwards.
type RunOptions struct {
	RunFlags
	// Worker is one of the file's; empty: the only one.
	Worker string
	// Command is for messages.
	Command []string
	// NoFile ignores workshop.yaml.
	NoFile bool
	// Print: only the text is asked for.
	Print bool
}

// LoadRun loads and compiles a run's project, which nothing else has: several runs, and
// the workshop itself, are up at the same time.
func (env *Env) LoadRun(ctx context.Context, o *RunOptions) (*Project, error) {
	env.fetches = !o.Print
	s, err := env.runSource(ctx, o)
	env.fetches = false
	if err != nil {
		return nil, err
	}
	if err := s.Runs(); err != nil {
		return nil, err
	}
	c, err := compileWorkshop(s.Workshop)
	if err != nil {
		return nil, err
	}
	name, err := env.projectName(s.Workshop.Name.V, s.Root())
	if err != nil {
		return nil, err
	}
	p := &Project{Source: s, Compiled: c, ProjectRef: ProjectRef{
		Name: name, Dir: RealPath(s.Root()), File: s.Path, isolation: s.Workshop.Isolation.V, image: imageInFiles(s.Workshop), kernels: kernelsOf(s.Workshop), run: s,
	}}
	if !s.flags {
		if err := env.checkHidden(p.ProjectRef); err != nil {
			return nil, err
		}
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	p.Name = ownName(name, "-run-"+hex.EncodeToString(random))
	return p, nil
}

// ownName is the name of a project with an ending.
func ownName(name, ending string) string {
	if most := MaxProjectName - len(ending); len(name) > most {
		name = strings.TrimRight(name[:most], "-_")
	}
	return name + ending
}

// RunText is the workshop.yaml of a run: the text of its flags, or the file's workshop as
// it is narrowed.
func (env *Env) RunText(p *Project) (text []byte, resolved *Resolved) {
	if p.flags {
		return p.text(), nil
	}
	r := resolve(p.Workshop)
	return nil, &r
}

// RunGrant says in a line what the file grants a run; empty: there is none.
func (p *Project) RunGrant() string {
	if p.flags {
		return ""
	}
	w := &p.Workshop.Workers[0]
	text := Printable(grant.MountsText(w.Container.Mounts, grant.Values) + "; " + grant.NetworkText(&w.Container.Network, grant.Values))
	return w.Name + " of " + Printable(p.ShownFile(p.Base())) + ": " + text
}

// RunWorker is the name of a run's worker.
func (p *Project) RunWorker() string { return p.Workshop.Workers[0].Name }

// Run is a run that was started.
type Run struct {
	*Running
	Worker string
	env    *Env
	note   *heldNote
	tidied chan struct{} // closed once nothing is left of killed runs
}

// StartRun starts a run's worker. The caller ends the run.
func (env *Env) StartRun(ctx context.Context, p *Project, approve func(context.Context, BuildRequest) error, ask func(context.Context, string) (bool, error)) (run *Run, err error) {
	env = env.forRun()
	r, err := env.connectRun(ctx, p, approve)
	if err != nil {
		return nil, err
	}
	env.detail("engine: %s (%s)", r.Chosen.Name, r.Chosen.Why)
	run = &Run{Running: r, Worker: p.RunWorker(), env: env, tidied: make(chan struct{})}
	go func() {
		defer close(run.tidied)
		env.removeKilledRuns(context.WithoutCancel(ctx))
	}()
	info, err := r.Info(ctx)
	if err = EngineError(err); err == nil {
		run.note, err = env.noteRun(p.Name, runNote{Dir: p.Dir, Engine: r.Chosen.Name, Endpoint: info.Endpoint})
	}
	if err == nil {
		r.Begin(p.Name)
		var ready *Project
		if ready, err = env.Prepare(ctx, r, p); err == nil {
			err = run.up(ctx, p, ready, ask)
		}
	}
	if err != nil {
		return nil, run.failed(ctx, err)
	}
	return run, nil
}

// up makes what the run needs and starts its worker, as [Change.Up] does. Nothing is
// there that it could conflict with.
func (run *Run) up(ctx context.Context, p, ready *Project, ask func(context.Context, string) (bool, error)) error {
	env := run.env
	created := ready.Compiled.Facts.ToCreate
	ready, err := (&Change{env: env}).Make(ctx, run.Running, p, ready)
	if err != nil {
		return err
	}
	plan, err := env.Plan(ctx, run.Running, ready, nil, UpOptions{})
	if err != nil {
		return err
	}
	f := ready.Compiled.Facts
	for _, source := range created {
		env.say("created %s for %d:%d (%s)", Printable(source), f.UID, f.GID, f.UserReason)
	}
	for _, source := range slices.Sorted(maps.Keys(f.Sources)) {
		env.sayLeads(f.ProjectDir, source, f.Sources[source].Real)
	}
	if err := env.Watch(ctx, ready, run.Capabilities().Contained, UpOptions{Ask: ask}); err != nil {
		return err
	}
	needs, err := env.agreeCredentials(ctx, run.Running, ready, false)
	if err != nil {
		return err
	}
	if err := env.Apply(ctx, run.Running, plan, env.Settings.WaitTimeout); err != nil {
		return err
	}
	return env.lease(ctx, run.Running, ready, needs)
}

// forRun leaves out the steps of plans that take no time: a run shows its command.
func (env *Env) forRun() *Env {
	own := *env
	if events := env.Events; events != nil && !env.Verbose {
		shown := false
		own.Events = func(e Event) {
			switch e.Kind {
			case StepsBegin:
				shown = false
			case Step:
				slow := e.Step.Step.Op == engine.OpPullImage || e.Step.Step.Op == engine.OpBuildImage
				if slow && !shown {
					shown = true
					events(Event{Kind: StepsBegin})
				}
				if slow {
					events(e)
				}
			case StepsEnd:
				if shown {
					events(e)
				}
			default:
				events(e)
			}
		}
	}
	return &own
}

// connectRun is [Env.Connect]. A run without a file that uses this machine's programs
// needs no engine but namespaces, where they are to be had.
func (env *Env) connectRun(ctx context.Context, p *Project, approve func(context.Context, BuildRequest) error) (*Running, error) {
	auto := env.Settings.Engine == "" || env.Settings.Engine == string(workshop.IsolationAuto)
	if auto && p.flags && p.Workshop.Workers[0].Container.Image.V == workshop.HostImage {
		named := *env
		named.Settings.Engine = promise.Namespace
		r, err := named.Connect(ctx, p.ProjectRef, approve)
		if err == nil {
			info, err := r.Info(ctx)
			if err == nil && refuse(p, info) == nil {
				r.env, r.Chosen.Why = env, "this machine's programs need no other"
				return r, nil
			}
			r.Close()
		}
	}
	r, err := env.Connect(ctx, p.ProjectRef, approve)
	if err == nil && !r.Capabilities().Contained {
		r.Close()
		return nil, Fail(CodeRefused, "a run is a sandbox, and %s mode is none", r.Chosen.Name).Hint("choose another engine: --engine namespace, or docker")
	}
	return r, err
}
