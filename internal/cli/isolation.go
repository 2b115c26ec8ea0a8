package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/imageref"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// whereabouts is what a command knows of its project before it has an engine.
type whereabouts struct {
	project   string
	isolation workshop.Isolation // as the file says; empty: nothing
	// file is an image that lies in this machine's files, which only the
	// namespace engine reads; empty: none.
	file string
}

// choice is the engine that a command uses.
type choice struct {
	name string
	why  string // for a person, where it was chosen by itself
}

// ownState are the engines that keep what runs in the user's state directory.
var ownState = []string{promise.Namespace, promise.Process}

// engineSetting checks what --engine, --isolation, WORKSHOP_ENGINE or the user's
// file say. Process mode gives up promises, so a variable, which a repository's
// tools may set, can't ask for it.
func (a *program) engineSetting(name string, variable bool) (string, error) {
	all := append([]string{string(workshop.IsolationAuto)}, promise.Engines()...)
	switch {
	case name != "" && !slices.Contains(all, name):
		from := ""
		if a.globals.engine == "" && variable {
			from = "WORKSHOP_ENGINE: "
		} else if a.globals.engine == "" {
			from = "setting engine: "
		}
		return "", app.Fail(app.CodeUsage, "%sno engine %q", from, name).Hint("there are %s", strings.Join(all, ", "))
	case name == promise.Process && variable && a.globals.engine != promise.Process:
		return "", app.Fail(app.CodeRefused, "WORKSHOP_ENGINE can't ask for process mode").
			hint("write `--isolation process`, or `engine: process` in your settings file")
	}
	return name, nil
}

// choose decides which engine a command uses: the one that the command line or
// the user's settings name; else the one on which the project is; else the one
// that the file names; else Docker where it answers, and namespaces where it
// doesn't. Process mode is never chosen, only asked for.
//
// The engine is not empty where it was connected to on the way.
func (a *program) choose(ctx context.Context, o EngineOptions) (choice, engine.Engine, error) {
	asked := a.set.engine
	is := a.engineOf(a.on.project)
	if asked == "" || asked == string(workshop.IsolationAuto) {
		switch file := string(a.on.isolation); {
		case is != "":
			var err error
			if is == promise.Process {
				err = a.allowProcess()
			}
			return choice{name: is, why: "the project is there"}, nil, err
		case file != "" && file != string(workshop.IsolationAuto):
			return choice{name: file, why: "the file says isolation: " + file}, nil, nil
		}
		if a.on.file != "" {
			return choice{name: promise.Namespace, why: "image: " + a.on.file + " is read by it alone"}, nil, nil
		}
		return a.automatic(ctx, o)
	}
	if asked == promise.Process {
		return choice{name: asked}, nil, a.allowProcess()
	}
	return choice{name: asked}, nil, nil
}

// automatic is Docker if it answers, else namespaces.
func (a *program) automatic(ctx context.Context, o EngineOptions) (choice, engine.Engine, error) {
	docker := choice{name: promise.Docker, why: "a Docker engine answers"}
	if runtime.GOOS != "linux" {
		return choice{name: promise.Docker, why: "this is no Linux machine"}, nil, nil
	}
	e, err := a.Engine(ctx, promise.Docker, o)
	if err == nil {
		p, ok := e.(engine.Pinger)
		if !ok {
			return docker, e, nil
		}
		if err = p.Ping(ctx); err == nil {
			return docker, e, nil
		}
		e.Close()
	}
	if ctx.Err() != nil {
		return choice{}, nil, context.Cause(ctx)
	}
	return choice{name: promise.Namespace, why: firstLine(err)}, nil, nil
}

// firstLine is an error without its hint, as a reason.
func firstLine(err error) string {
	if f, ok := errors.AsType[*app.Failure](engineError(err)); ok && f.Err != nil {
		err = f.Err
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// engineOf tells which of the engines that keep their state with the user has a
// project; "" for none.
func (a *program) engineOf(project string) string {
	dir := a.stateDir()
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

// elsewhere refuses to bring a project up on one engine while it is on another, or
// from one directory while it is from another.
func (a *program) elsewhere(c *compiled) error {
	project := c.project
	if err := a.checkDirectory(c.target()); err != nil {
		return err
	}
	is := a.engineOf(project)
	if is == "" || is == a.chosen.name {
		return nil
	}
	return app.Fail(app.CodeRefused, "project %s is up on the %s engine, not on %s", project, is, a.chosen.name).
		hint("to move it: `workshop --engine %s -p %s down`, then again", is, project)
}

// allowProcess refuses process mode where nobody sees its warning.
func (a *program) allowProcess() error {
	ci := a.inCI()
	if ci == "" || a.globals.forceProcess {
		return nil
	}
	return app.Fail(app.CodeRefused, "process mode is refused in continuous integration (%s=%s): tools would run on this machine, as you", ci, a.getenv(ci)).
		hint("`--isolation namespace` needs no Docker; to do it all the same, add --force-process")
}

// sayChosen says which engine was chosen by itself, and why.
func (a *program) sayChosen() {
	if a.chosen.why != "" {
		a.say("isolation: %s (%s)", a.chosen.name, a.chosen.why)
	}
}

// sayProcess warns of process mode, in every command that works in it.
func (a *program) sayProcess() {
	a.warn("process mode: tools run on this machine as you, under checks of paths and lists; %s don't hold", promise.Ranges(promise.Waived(promise.Process)))
}

// imageInFiles is an image of a worker that lies in this machine's files, ""
// if there is none.
func imageInFiles(w *workshop.Workshop) string {
	for i := range w.Workers {
		k := &w.Workers[i].Container
		if ref, err := imageref.Parse(k.Image.V); err == nil && k.Build == nil && ref.OnMachine() {
			return k.Image.V
		}
	}
	return ""
}
