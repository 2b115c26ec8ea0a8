package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// Choice is the engine that a command uses.
type Choice struct {
	Name string
	Why  string // for a person, where it was chosen by itself
	// place is where the project is up; nil: nowhere, as far as it is known.
	place *facts.Place
}

// ownState are the engines that keep what runs in the user's state directory.
var ownState = []string{promise.Namespace, promise.Process}

// choose decides which engine a command uses: the one on which the project is recorded to
// be up; else the one that the command line or the user's settings name; else the one on
// which the project is; else the one that the file names; else Docker where it answers,
// and namespaces where it doesn't, or of the two the first on which each worker can have its
// kernel. Process mode is never chosen, only asked for.
//
// The engine is not empty where it was connected to on the way.
func (env *Env) choose(ctx context.Context, t ProjectRef, o EngineOptions) (Choice, engine.Engine, error) {
	asked := env.Settings.Engine
	if p := env.place(t); p != nil {
		c := Choice{Name: p.Engine, Why: "the project is there", place: p}
		if p.Engine == promise.Process {
			return c, nil, env.allowProcess()
		}
		return c, nil, env.askedElsewhere(t, p)
	}
	is := env.engineOf(t.Name)
	if asked == "" || asked == string(workshop.IsolationAuto) {
		switch file := string(t.isolation); {
		case is != "":
			var err error
			if is == promise.Process {
				err = env.allowProcess()
			}
			return Choice{Name: is, Why: "the project is there"}, nil, err
		case file != "" && file != string(workshop.IsolationAuto):
			return Choice{Name: file, Why: "the file says isolation: " + file}, nil, nil
		}
		if t.image != "" {
			return Choice{Name: promise.Namespace, Why: "image: " + t.image + " is read by it alone"}, nil, nil
		}
		if t.kernels != (neededKernels{}) && runtime.GOOS == "linux" {
			return env.withKernels(ctx, t.kernels, o)
		}
		return env.automatic(ctx, o)
	}
	if asked == promise.Process {
		return Choice{Name: asked}, nil, env.allowProcess()
	}
	return Choice{Name: asked}, nil, nil
}

// automatic is Docker if it answers, else namespaces.
func (env *Env) automatic(ctx context.Context, o EngineOptions) (Choice, engine.Engine, error) {
	docker := Choice{Name: promise.Docker, Why: "a Docker engine answers"}
	if runtime.GOOS != "linux" {
		return Choice{Name: promise.Docker, Why: "this machine does not run Linux"}, nil, nil
	}
	e, err := env.Engine(ctx, promise.Docker, o)
	if err == nil {
		if err = e.Ping(ctx); err == nil {
			return docker, e, nil
		}
		e.Close()
	}
	if ctx.Err() != nil {
		return Choice{}, nil, context.Cause(ctx)
	}
	return Choice{Name: promise.Namespace, Why: firstLine(err)}, nil, nil
}

// firstLine is an error without its hint, as a reason.
func firstLine(err error) string {
	if f, ok := errors.AsType[*Failure](EngineError(err)); ok && f.Err != nil {
		err = f.Err
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// engineOf tells which of the engines that keep their state with the user has a
// project; "" for none.
func (env *Env) engineOf(project string) string {
	dir := env.StateDir()
	if dir == "" || project == "" {
		return ""
	}
	for _, name := range ownState {
		if info, err := os.Stat(filepath.Join(dir, name, project)); err == nil && info.IsDir() {
			return name
		}
	}
	return ""
}

// Elsewhere refuses to bring a project up on one engine while it is on another, or
// from one directory while it is from another.
func (env *Env) Elsewhere(ctx context.Context, r *Running) error {
	if err := env.CheckDirectory(ctx, r.ProjectRef); err != nil {
		return err
	}
	if p := r.Chosen.place; p != nil {
		return env.elsewhere(ctx, r, p)
	}
	is := env.engineOf(r.Name)
	if is == "" || is == r.Chosen.Name {
		return nil
	}
	return Fail(CodeRefused, "project %s is up on the %s engine, not on %s", r.Name, is, r.Chosen.Name).
		Hint("to move it: `workshop --engine %s -p %s down`, then again", is, r.Name)
}

// allowProcess refuses process mode where nobody sees its warning.
func (env *Env) allowProcess() error {
	ci := env.inCI()
	if ci == "" || env.Settings.ForceProcess {
		return nil
	}
	return Fail(CodeRefused, "process mode is refused in continuous integration (%s=%s): tools would run on this machine, as you", ci, env.Getenv(ci)).
		Hint("`--isolation namespace` needs no Docker; add --force-process to allow it")
}

// SayChosen says which engine was chosen by itself, and why.
func (env *Env) SayChosen(c Choice) {
	if c.Why != "" {
		env.say("engine: %s (%s)", c.Name, c.Why)
	}
}

// sayProcess warns of process mode, in every command that works in it.
func (env *Env) sayProcess() {
	env.warn("process mode: tools run on this machine as you, under checks of paths and lists; %s don't hold", promise.Ranges(promise.Waived(promise.Process)))
}

// imageInFiles is a worker's image that is among this machine's files, ""
// if there is none.
func imageInFiles(w *workshop.Workshop) string {
	for i := range w.Workers {
		k := &w.Workers[i].Container
		if ref, err := reference.Parse(k.Image.V); err == nil && k.Build == nil && ref.OnMachine() {
			return k.Image.V
		}
	}
	return ""
}
