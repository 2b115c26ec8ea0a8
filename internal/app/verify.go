package app

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/verify"
	"github.com/llmdo/workshop/internal/verify/outside"
	"github.com/llmdo/workshop/workshop"
)

// VerifyRequest says what is verified.
type VerifyRequest struct {
	Workers []string // empty: all that run
	// Live dials hosts that the policy allows.
	Live bool
	// Disruptive brings up a copy of the project, and kills and fills that.
	Disruptive bool
}

// verification is one run of Verify.
type verification struct {
	env     *Env
	o       VerifyRequest
	view    *PolicyView
	running *Running
	seen    engine.Observed
	workers []*verify.Worker
	rooms   map[string]*verify.Outside // rooms and guard, by service
	began   time.Time
	id      string // of this run, in names that are looked up
	canary  *canary
	report  *verify.Report

	mu     sync.Mutex
	looked []searched
}

// searched is a text in which no secret may be.
type searched struct{ where, text string }

// Verify tries what the running workers must not be able to, and looks at them from
// outside. It changes nothing of them.
func (env *Env) Verify(ctx context.Context, o VerifyRequest) (*verify.Report, error) {
	view, err := env.viewPolicy(ctx, "")
	if err != nil {
		return nil, err
	}
	defer view.close()
	if view.engine == nil {
		return nil, EngineError(view.Missing)
	}
	v := &verification{env: env, o: o, view: view, running: view.engine, rooms: map[string]*verify.Outside{}, began: time.Now(), id: verify.NewID()}
	if !v.running.Capabilities().Contained {
		return nil, Fail(CodeRefused, "process mode keeps no promise of containers and networks (B1–B36): tools run on this machine, so there is nothing to verify")
	}
	if v.seen, err = v.running.Look(ctx, false); err != nil {
		return nil, EngineError(err)
	}
	if err := v.choose(ctx); err != nil {
		return nil, err
	}
	v.canary = newCanary()
	defer v.canary.close()
	v.report = &verify.Report{Workshop: view.c.Workshop.Name.V, Project: v.running.Name, Engine: v.running.Chosen.Name, Live: o.Live, Disruptive: o.Disruptive, Lines: []verify.Line{}}
	v.try(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var more []verify.Line
	if o.Disruptive {
		if more, err = v.disrupt(ctx); err != nil {
			return nil, err
		}
		if ctx.Err() != nil { // what didn't happen then is no break
			return nil, context.Cause(ctx)
		}
	}
	v.judge(more)
	return v.report, nil
}

// choose finds the workers that run.
func (v *verification) choose(ctx context.Context) error {
	if err := v.env.services(ctx, v.running.ProjectRef, v.seen, v.o.Workers, compose.RoleWorker); err != nil {
		return err
	}
	changed, _ := v.env.changedFiles(v.view.c.Source)
	ready := v.facts(ctx)
	for _, c := range v.seen.Containers {
		if c.Role != compose.RoleWorker.String() || len(v.o.Workers) > 0 && !slices.Contains(v.o.Workers, c.Service) {
			continue
		}
		w := v.view.c.Worker(c.Service)
		switch {
		case c.State != "running":
			v.env.warn("worker %s is %s, and not verified: `workshop up` starts it", c.Service, c.State)
			continue
		case w == nil:
			v.env.warn("worker %s isn't in %s, and not verified: `workshop up` removes it", Printable(c.Service), v.view.File)
			continue
		}
		x := v.worker(w, ready, c.Started)
		if c.Machine != "" {
			x.OwnKernel, x.VM, x.PIDs = true, true, compose.VMThreads
		}
		x.NotHeld, x.Changed, x.Replaced = c.NotHeld, len(changed) > 0, c.Replaced
		if len(c.Sources) > 0 {
			x.Sockets, x.SocketsMissed = gainedSockets(ctx, w, c)
		}
		v.workers = append(v.workers, x)
	}
	if len(v.workers) == 0 {
		return Fail(CodeFailed, "no worker of project %s runs", v.running.Name).Hint("start them with `workshop up`")
	}
	if len(changed) > 0 {
		v.env.say("%s changed since `up`: what only the new file says is not tested", WorkersText(shownAll(v.env, changed)))
	}
	return nil
}

func shownAll(env *Env, paths []string) (out []string) {
	for _, p := range paths {
		out = append(out, env.shownClipped(p))
	}
	return out
}

// facts collects those of this machine; what would keep a start from succeeding doesn't
// matter. nil: they aren't known.
func (v *verification) facts(ctx context.Context) *Project {
	info, err := v.running.Info(ctx)
	if err != nil {
		return nil
	}
	o := v.env.factsOptions(ctx, v.view.c.startedLike(ctx, v.running), info)
	if o.InitImage, o.InitVolume, err = v.running.InitNames(ctx); err != nil {
		return nil
	}
	ready, _ := withFacts(ctx, v.view.c, o)
	if ready.Compiled == nil || ready.Compiled.Project == nil {
		return nil
	}
	return ready
}

// worker is what the file grants a worker.
func (v *verification) worker(w *workshop.Worker, ready *Project, started time.Time) *verify.Worker {
	c := &w.Container
	x := &verify.Worker{
		Name: w.Name, Mode: c.Network.Mode.V, OwnKernel: c.Kernel.V.Own(),
		Memory: int64(c.Resources.Memory.V), CPUs: c.Resources.CPU.V, PIDs: c.Resources.PIDs.V, Env: map[string]bool{},
	}
	if x.OwnKernel {
		x.Runtime, x.PIDs = compose.GVisorRuntime, compose.GVisorThreads(x.PIDs)
		if ready != nil {
			x.Writable = memoryOf(ready, w.Name) // of its kernel, which this machine doesn't show
		}
		if ready != nil && ready.Compiled.Facts.Local {
			x.Machine = made.ReadKernel()
		}
	}
	for i := range c.Mounts {
		m := &c.Mounts[i]
		line := verify.Mount{Target: m.Target.V, ReadWrite: m.ReadWrite, Copy: m.IsCopy()}
		if line.Copy {
			line.Excluded, line.Kept = v.copied(m, started)
		}
		x.Mounts = append(x.Mounts, line)
	}
	for i := range c.Caches {
		x.Writable = append(x.Writable, c.Caches[i].Target.V)
	}
	for _, s := range c.Secrets {
		x.Secrets = append(x.Secrets, s.Name)
	}
	for name := range c.Env {
		x.Env[name] = true
	}
	if v.env.Environ != nil {
		x.Caller = v.env.Environ()
	}
	if ready != nil {
		x.Protected = protectedIn(ready, w, started)
		if f := ready.Compiled.Facts; f != nil {
			x.Refusal = f.Refusal
		}
		for _, s := range ready.Compiled.Project.Services[w.Name].Volumes {
			// A repository of a linked worktree is at its own path.
			if !s.ReadOnly && workshop.MountAt(c.Mounts, s.Target) == nil && slices.ContainsFunc(c.Mounts, func(m workshop.Mount) bool { return m.GitWritable }) {
				x.Writable = append(x.Writable, s.Target)
			}
		}
	}
	x.Published = v.declared(w)
	if i := slices.IndexFunc(v.view.Effective, func(r firewall.RoomPolicy) bool { return slices.Contains(r.Workers, w.Name) }); i >= 0 {
		x.Net = v.network(w, &v.view.Effective[i])
	}
	return x
}

// memoryOf are the memory file systems of a worker.
func memoryOf(ready *Project, worker string) (targets []string) {
	for _, t := range ready.Compiled.Project.Services[worker].Tmpfs {
		target, _, _ := strings.Cut(t, ":")
		targets = append(targets, target)
	}
	return targets
}

// declared are the addresses at which the file publishes a worker's ports.
func (v *verification) declared(w *workshop.Worker) (out []string) {
	leases := v.env.Ports(v.running.ProjectRef)
	for _, p := range w.Container.Ports {
		n := p.Published.V
		if p.Auto() {
			n = leases[compose.PortKey{Worker: w.Name, Target: p.Target.V}]
		}
		host := p.Host.V
		if host == "" {
			host = "127.0.0.1"
		}
		out = append(out, hostPort(host, n))
	}
	return out
}

// atOnce is how many workers are verified at the same time.
const atOnce = 8

// try carries out what the lines are about.
func (v *verification) try(ctx context.Context) {
	v.beforeTries(ctx)
	v.lookAtRooms(ctx, func(w *verify.Worker, o *verify.Outside) { w.RoomBefore = o })
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, w := range v.workers {
		g.Go(func() error {
			v.probe(gctx, w)
			v.tools(gctx, w)
			w.Outside = v.look(gctx, w.Name)
			switch {
			case w.VM:
				w.Outside.InMachine()
			case w.OwnKernel:
				lookAtFiles(w.Outside)
			}
			return nil
		})
	}
	for _, c := range v.seen.Containers {
		if c.State == "running" && !compose.IsWorkers(c.Role) {
			g.Go(func() error {
				o := v.look(gctx, c.Service)
				v.mu.Lock()
				defer v.mu.Unlock()
				v.rooms[c.Service] = o
				return nil
			})
		}
	}
	_ = g.Wait() // what went wrong is in the lines
	v.lookAtRooms(ctx, func(w *verify.Worker, o *verify.Outside) { w.RoomAfter = o })
	v.afterTries(ctx)
}

// look looks at a container from outside, and keeps what the engine knows of it.
func (v *verification) look(ctx context.Context, service string) *verify.Outside {
	return lookAt(ctx, v.running, service, func(text string) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.looked = append(v.looked, searched{"what the engine knows of " + service, text})
	})
}

// lookAt looks at a container from outside. said, if not nil, gets all that the engine
// says of it.
func lookAt(ctx context.Context, r *Running, service string, said func(string)) *verify.Outside {
	w, err := r.Witness(ctx, r.Name, service, r.Dir)
	if err != nil {
		return &verify.Outside{Why: plainText(EngineError(err))}
	}
	defer w.Close()
	o := &verify.Outside{Witness: w}
	if w.PID == 0 {
		o.Hidden = "the engine is on another machine, which shows no processes here"
	} else if o.Process, err = outside.Look(w.PID, w.Hold != nil); err != nil {
		o.Process, o.Hidden = nil, err.Error()
	}
	if said != nil {
		said(w.Text)
	}
	return o
}

// lookAtFiles looks at the process that opens files for a worker with a kernel of its own.
func lookAtFiles(o *verify.Outside) {
	if o.Process == nil {
		return
	}
	var err error
	if o.Files, err = outside.Files(o.PID); err != nil {
		o.FilesHidden = err.Error()
	}
}

// lookAtRooms looks at the rooms of workers with a kernel of their own.
func (v *verification) lookAtRooms(ctx context.Context, set func(*verify.Worker, *verify.Outside)) {
	for _, w := range v.workers {
		if w.OwnKernel && w.Net != nil {
			o := lookAt(ctx, v.running, w.Net.Room, nil)
			if o.Process != nil {
				o.Process.Listening, _ = outside.Listening(strconv.Itoa(o.PID))
			}
			set(w, o)
		}
	}
}

// judge makes the lines of the report.
func (v *verification) judge(more []verify.Line) {
	var lines []verify.Line
	for _, w := range v.workers {
		lines = append(lines, verify.Judge(w)...)
	}
	for _, c := range v.seen.Containers {
		o := v.rooms[c.Service]
		if o == nil {
			continue
		}
		lines = append(lines, verify.Services(c.Service, c.Role == compose.RoleRoom.String(), c.NotHeld, o)...)
		if c.Role == compose.RoleGuard.String() {
			lines = append(lines, v.guardLines(o)...)
		}
	}
	lines = verify.With(append(lines, verify.Secrets(v.secretValues())), more)
	v.report.Add(append(lines, verify.Rest(lines)...)...)
	v.report.Sort()
}

// guardLines are those about the guard alone.
func (v *verification) guardLines(o *verify.Outside) []verify.Line {
	var declared []string
	changed := false
	for i := range v.view.c.Workshop.Workers { // the guard publishes those of all
		declared = append(declared, v.declared(&v.view.c.Workshop.Workers[i])...)
	}
	for _, w := range v.workers {
		changed = changed || w.Changed
	}
	listening, _ := outside.Listening("self")
	return []verify.Line{verify.Published(o, declared, listening, changed), verify.GuardRestarts(o)}
}

// secretValues looks for the values of secrets in what is visible outside.
func (v *verification) secretValues() verify.SecretValues {
	c := v.view.c
	out := verify.SecretValues{}
	for _, value := range secretsOf(v.env, c) {
		if len(value) < 6 { // it would be found by chance
			continue
		}
		out.Names = append(out.Names, "")
		for _, s := range append(v.looked, v.generated()...) {
			if strings.Contains(s.text, value) && !slices.Contains(out.Found, s.where) {
				out.Found = append(out.Found, s.where)
			}
		}
	}
	for _, s := range append(v.looked, v.generated()...) {
		out.Looked = append(out.Looked, s.where)
	}
	return out
}
