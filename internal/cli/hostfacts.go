package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/diag"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
)

// initNamer is an engine that runs workshop-init: it knows the image and the
// volume by which containers get it.
type initNamer interface {
	InitNames(ctx context.Context) (image, volume string, err error)
}

// checker is an engine that can tell what it won't carry out.
type checker interface {
	Check(ctx context.Context, c *compose.Compiled) error
}

// prepare finds out what the machine is and puts it into the project. With
// make it also makes what a run needs here: missing directories, the runtime
// directory, secrets. What can't be carried out on this machine and engine
// ends the command with code 4, before anything was started.
func (a *program) prepare(ctx context.Context, e engine.Engine, c *compiled, make bool) (*compiled, error) {
	info, err := e.Info(ctx)
	if err != nil {
		return nil, engineError(err)
	}
	if err := refuse(c, info); err != nil {
		return nil, err
	}
	o := a.factsOptions(c, info)
	o.Create = make
	if namer, ok := e.(initNamer); ok {
		if o.InitImage, o.InitVolume, err = namer.InitNames(ctx); err != nil {
			return nil, engineError(err)
		}
	}
	ready, list := withFacts(ctx, c, o)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if make && !list.HasErrors() {
		list = nil // said before, when nothing had been made yet
	}
	if err := a.printPreflight(c, list); err != nil {
		return nil, err
	}
	if err := checkPromises(ready.compiled); err != nil {
		return nil, err
	}
	if judge, ok := e.(checker); ok {
		return ready, engineError(judge.Check(ctx, ready.compiled))
	}
	return ready, nil
}

func withFacts(ctx context.Context, c *compiled, o facts.Options) (*compiled, diag.List) {
	f, list := facts.Collect(ctx, o)
	ready := *c
	var more diag.List
	ready.compiled, more = compose.WithFacts(c.compiled, f)
	ready.notChecked = slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return d.Code == facts.CodeNotChecked })
	return &ready, append(list, more...).Sorted()
}

func (a *program) factsOptions(c *compiled, info engine.Info) facts.Options {
	o := facts.Options{
		Workshop: c.w, Compiled: c.compiled, Project: c.project, ProjectDir: c.dir,
		Lookup: a.Lookup, Home: a.Home, UID: os.Getuid(), GID: os.Getgid(),
		Arch: info.Arch, IPv6: info.IPv6, Local: info.Local, Runtimes: info.Runtimes, DataRoot: info.DataRoot,
		DefaultRuntime: info.DefaultRuntime, UserRuntimes: a.set.runtimes,
		SecretsOnDisk: a.set.secretsOnDisk, EngineDirs: info.Own,
	}
	if info.Socket != "" {
		o.Sockets = []string{info.Socket}
	}
	return o
}

// printPreflight shows what stands against a start here.
func (a *program) printPreflight(c *compiled, list diag.List) error {
	seen := *c.source
	seen.diags = list
	shown, texts := seen.shown()
	if a.set.quiet && !shown.HasErrors() {
		return nil
	}
	if err := a.printDiagnostics(shown, texts); err != nil {
		return err
	}
	if n := shown.Count(diag.Error); n > 0 {
		return app.Fail(app.CodeRefused, "%s can't come up on this machine: %s; nothing was started",
			a.shown(filepath.Join(c.dir, c.file)), count(n, "error"))
	}
	return nil
}
