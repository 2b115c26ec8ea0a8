package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/boundedfile"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/workshop"
)

// target is a project on an engine that a command works on. It needs the
// workshop's name only, so that a file with a mistake in it doesn't keep
// anybody from stopping what runs.
type target struct {
	project string
	// dir is the absolute project directory with symlinks resolved, as the
	// engine's objects name it; empty with -p and no file.
	dir string
	// file is the workshop file; empty with -p and no file.
	file string
}

func (a *app) target() (target, error) {
	file, err := a.findFile()
	if err != nil {
		if a.set.project != "" && a.set.file == "" {
			project, err := a.projectName("", "")
			a.on = whereabouts{project: project}
			return target{project: project}, err
		}
		return target{}, err
	}
	t := target{dir: realPath(filepath.Dir(file)), file: file}
	name, isolation := quickLook(file)
	if name == "" && a.set.project == "" {
		s, err := a.load()
		if err != nil {
			return t, err
		}
		name, isolation = s.w.Name.V, s.w.Isolation.V
	}
	t.project, err = a.projectName(name, t.dir)
	a.on = whereabouts{project: t.project, isolation: isolation}
	if err == nil {
		err = a.checkHidden(t)
	}
	return t, err
}

// checkHidden refuses a file by which a worker would hide what runs, and what it
// wrote, from who asks for it without a name (B8, B60): a nearer workshop.yaml than
// the project's, a `.git` file that names a worktree, another `name:`.
func (a *app) checkHidden(t target) error {
	if a.set.file == "" {
		if by, dir := facts.WrittenBy(t.file, os.Getuid(), a.Lookup, a.Home); by != "" {
			return fail(codeRefused, "%s is new or changed since project %s was brought up from %s, whose workers may write it (B8)", printable(a.shown(t.file)), printable(by), printable(dir)).
				hint("look at it: `workshop -f %s …` takes it if it is yours, `workshop -f %s ps --strict` shows what is up", printable(a.shown(t.file)), printable(a.shown(dir)))
		}
	}
	if a.set.project != "" {
		return nil
	}
	up := facts.Projects(t.dir, os.Getuid(), a.Lookup, a.Home)
	if len(up) == 0 || slices.Contains(up, t.project) {
		return nil
	}
	return fail(codeRefused, "this directory was brought up as project %s, and would be project %s now: `name:`, or the worktree that .git names, has changed since", printable(strings.Join(up, ", ")), t.project).
		hint("look at what changed: a worker may have done it; `workshop -p %s ps --strict` and `workshop -p %s down` work on what was brought up", printable(up[0]), printable(up[0]))
}

// quickLook reads the name and the isolation alone; an empty name where that
// needs the whole loader. An isolation that a file can't ask for is none.
func quickLook(file string) (name string, isolation workshop.Isolation) {
	// A link out of the project is the loader's to judge.
	data, err := boundedfile.ReadFS(projectFS{dir: filepath.Dir(file)}, filepath.Base(file), workshop.MaxFileSize)
	if err != nil {
		return "", ""
	}
	name, isolation = workshop.Identity(data)
	switch isolation {
	case workshop.IsolationDocker, workshop.IsolationNamespace:
	default:
		isolation = ""
	}
	if !validName(name) {
		name = ""
	}
	return name, isolation
}

// observe connects and looks at the project. The caller closes the engine.
func (a *app) observe(ctx context.Context, t target) (engine.Engine, engine.Observed, error) {
	e, err := a.connect(ctx, nil)
	if err != nil {
		return nil, engine.Observed{}, err
	}
	seen, err := e.Observe(ctx, t.project)
	if err != nil {
		e.Close()
		return nil, seen, engineError(err)
	}
	return e, seen, nil
}

// observeOwn is observe for commands that must not work on the project of
// another directory that has the same name. Commands that only show something
// may: asked says that -p named it.
func (a *app) observeOwn(ctx context.Context, t target, asked bool) (engine.Engine, engine.Observed, error) {
	e, seen, err := a.observe(ctx, t)
	if err != nil || asked {
		return e, seen, err
	}
	if err := engine.CheckDirectory(seen, t.dir); err != nil {
		e.Close()
		return nil, seen, engineError(err)
	}
	return e, seen, nil
}

// look is [app.observeOwn] over a connection that is there.
func (a *app) look(ctx context.Context, e engine.Engine, t target, asked bool) (engine.Observed, error) {
	seen, err := e.Observe(ctx, t.project)
	if err == nil && !asked {
		err = engine.CheckDirectory(seen, t.dir)
	}
	return seen, engineError(err)
}

// services checks names of the command line against what exists.
func services(t target, seen engine.Observed, names []string) error {
	var all []string
	for _, c := range seen.Containers {
		all = append(all, c.Service)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) == 0 {
		return notUp(t)
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fail(codeFailed, "project %s has no worker %q", t.project, name).hint("%s", suggestion(name, all))
		}
	}
	return nil
}

// target is the project of a compiled workshop.
func (c *compiled) target() target {
	return target{project: c.project, dir: realPath(c.dir), file: filepath.Join(c.dir, c.file)}
}

// realPath resolves symlinks; a path that can't be resolved stays as it is.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// errNotUp is what [notUp] wraps.
var errNotUp = errors.New("is not up")

func notUp(t target) *failure {
	return fail(codeFailed, "project %s %w", t.project, errNotUp).hint("start it with `workshop up`")
}
