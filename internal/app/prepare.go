package app

import (
	"context"
	"maps"
	"os"
	"slices"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
)

// Prepare finds out what the machine is and puts it into a copy of the project. It
// changes nothing: see [Change.Make]. What can't be carried out on this machine and
// engine is a failure with code 4.
func (env *Env) Prepare(ctx context.Context, e engine.Engine, c *Project) (*Project, error) {
	if err := env.MayRun(ctx, c.Source); err != nil {
		return nil, err
	}
	if c.run == nil {
		if err := env.CheckModels(ctx, c, ""); err != nil {
			return nil, err
		}
	}
	return env.prepare(ctx, e, c, false)
}

// prepare is Prepare; said: problems that are no errors were said before.
func (env *Env) prepare(ctx context.Context, e engine.Engine, c *Project, said bool) (*Project, error) {
	info, err := e.Info(ctx)
	if err != nil {
		return nil, EngineError(err)
	}
	if r, ok := e.(*Running); ok {
		if err := env.checkPlace(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := refuse(c, info); err != nil {
		return nil, err
	}
	o := env.factsOptions(ctx, c, info)
	if o.InitImage, o.InitVolume, err = e.InitNames(ctx); err != nil {
		return nil, EngineError(err)
	}
	if o.Ports, err = env.portsOf(e, c); err != nil {
		return nil, err
	}
	ready, list := withFacts(ctx, c, o)
	ready.place = upOn(info)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if said && !list.HasErrors() {
		list = nil
	}
	if err := env.preflight(c, list); err != nil {
		return nil, err
	}
	if err := checkPromises(ready.Compiled); err != nil {
		return nil, err
	}
	return ready, EngineError(e.Check(ctx, ready.Compiled))
}

// Make makes what a run of a prepared project needs on this machine: missing
// directories, the runtime directory, secrets, leases of ports. It returns the project as it is then,
// looked at again if something may have changed since [Env.Prepare].
func (ch *Change) Make(ctx context.Context, e engine.Engine, c, ready *Project) (*Project, error) {
	var err error
	if ch.waited {
		if ready, err = ch.env.prepare(ctx, e, c, true); err != nil {
			return nil, err
		}
	}
	leased, err := ch.leasePorts(ctx, e, c)
	if err != nil {
		return nil, err
	}
	if list := ready.missing.Make(); len(list) > 0 {
		return nil, ch.env.preflight(c, list)
	}
	if len(ready.Compiled.Facts.ToCreate) == 0 && maps.Equal(leased, ready.Compiled.Facts.Ports) {
		return ready, nil
	}
	now := *c
	now.ports = leased
	return ch.env.prepare(ctx, e, &now, true)
}

func withFacts(ctx context.Context, c *Project, o facts.Options) (*Project, diag.List) {
	f, missing, list := facts.Collect(ctx, o)
	ready := *c
	ready.missing = missing
	var more diag.List
	ready.Compiled, more = compose.WithFacts(c.Compiled, f)
	ready.NotChecked = slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return d.Code == facts.CodeNotChecked })
	return &ready, append(list, more...).Sorted()
}

func (env *Env) factsOptions(ctx context.Context, c *Project, info engine.Info) facts.Options {
	o := facts.Options{
		Workshop: c.Workshop, Compiled: c.Compiled, Project: c.Name, ProjectDir: c.Dir,
		Lookup: env.Lookup, Home: env.Home, UID: os.Getuid(), GID: os.Getgid(),
		Arch: info.Arch, IPv6: info.IPv6, Local: info.Local, Rootless: info.Daemon.Rootless, MappedIDs: info.MappedIDs(), Runtimes: info.Runtimes, DataRoot: info.DataRoot,
		DefaultRuntime: info.DefaultRuntime, UserRuntimes: env.Settings.Runtimes,
		SecretsOnDisk: env.Settings.SecretsOnDisk, EngineDirs: info.Own,
	}
	o.Kernels = env.kernels(ctx, &info, kernelsOf(c.Workshop), env.Emulate || c.emulated)
	if c.modelOf != "" {
		o.DataDir = env.DataDir()
	}
	if info.Socket != "" {
		o.Sockets = []string{info.Socket}
	}
	return o
}

// preflight says what prevents a start here.
func (env *Env) preflight(c *Project, list diag.List) error {
	if c.run != nil {
		return env.runPreflight(c, list)
	}
	seen := *c.Source
	seen.Diagnostics = list
	env.problems(&seen)
	if n := list.Count(diag.Error); n > 0 {
		return Fail(CodeRefused, "%s can't come up on this machine: %s; nothing was started",
			env.Shown(c.Path), Count(n, "error"))
	}
	return nil
}
