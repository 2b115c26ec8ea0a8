package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/boundedfile"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/hostpath"
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

func (a *program) target(ctx context.Context) (target, error) {
	named := a.set.project != "" && a.set.file == "" // by -p alone
	file, err := a.findFile()
	if err != nil && !named {
		return target{}, a.hintRecorded(err)
	}
	t := target{file: file}
	name, isolation := "", workshop.Isolation("")
	if file != "" {
		t.dir = realPath(filepath.Dir(file))
		name, isolation = quickLook(file)
	}
	if name == "" && a.set.project == "" {
		s, err := a.load(ctx)
		if err != nil {
			return t, a.hintRecorded(err)
		}
		name, isolation = s.w.Name.V, s.w.Isolation.V
	}
	if t.project, err = a.projectName(name, t.dir); err != nil {
		return t, err
	}
	a.on = whereabouts{project: t.project, isolation: isolation}
	if file != "" {
		if err := a.checkHidden(t); err != nil {
			return t, err
		}
	}
	if named {
		// Its file may be gone, and be found further up then.
		r, err := a.record(t.project)
		if err == nil && r != nil && r.Dir != t.dir && (file == "" || within(realPath(a.Dir), r.Dir)) {
			t.dir, t.file = r.Dir, ""
		}
	}
	return t, nil
}

// within tells whether a path is a directory or lies below it.
func within(path, dir string) bool {
	_, ok := hostpath.Below(path, dir)
	return ok
}

// recordedHere are the projects that were brought up from the working directory or
// one above it, nearest first.
func (a *program) recordedHere(all []*facts.Record) []*facts.Record {
	here := realPath(a.Dir)
	all = slices.DeleteFunc(slices.Clone(all), func(r *facts.Record) bool { return !within(here, r.Dir) })
	slices.SortFunc(all, func(x, y *facts.Record) int { return len(y.Dir) - len(x.Dir) })
	return all
}

// hintRecorded adds to a failure with the workshop's file how to go on without it:
// a worker may have removed or spoiled it (B60).
func (a *program) hintRecorded(err error) error {
	all, _ := facts.Records(a.recordsDir())
	f, ok := errors.AsType[*app.Failure](err)
	if up := a.recordedHere(all); ok && len(up) > 0 {
		p := up[0].Project
		return f.Hint("project %s was brought up from %s: `workshop -p %s ps --strict` and `workshop -p %s down` work without the file", p, printable(up[0].Dir), p, p)
	}
	return err
}

// checkHidden refuses a file by which a worker would hide what runs, and what it
// wrote, from who asks for it without a name (B8, B60): a nearer workshop.yaml than
// the project's, none at all below another one, a `.git` file that names a worktree,
// another `name:`.
func (a *program) checkHidden(t target) error {
	all, err := facts.Records(a.recordsDir())
	if err != nil && a.set.project == "" {
		return app.Fail(app.CodeFailed, "%w", err).Hint("`workshop -p NAME down` removes the record of a project")
	}
	if a.set.file == "" {
		if by := facts.WrittenBy(t.file, all); by != nil {
			return app.Fail(app.CodeRefused, "%s is new or changed since project %s was brought up from %s, whose workers may write it (B8)", printable(a.shown(t.file)), by.Project, printable(by.Dir)).
				hint("look at it: `workshop -f %s …` takes it if it is yours, `workshop -f %s ps --strict` shows what is up", printable(a.shown(t.file)), printable(a.shown(by.Dir)))
		}
	}
	if a.set.project != "" {
		return nil
	}
	if here := a.recordedHere(all); a.set.file == "" && len(here) > 0 && len(here[0].Dir) > len(t.dir) {
		p := here[0].Project
		return app.Fail(app.CodeRefused, "project %s was brought up from %s, which has no workshop.yaml any more; %s is another's", p, printable(here[0].Dir), printable(a.shown(t.file))).
			hint("look at what changed: a worker may have done it; `workshop -p %s ps --strict` and `workshop -p %s down` work on what was brought up", p, p)
	}
	var up []string
	for _, r := range all {
		if r.Named && r.Dir == t.dir {
			up = append(up, r.Project)
		}
	}
	if len(up) == 0 || slices.Contains(up, t.project) {
		return nil
	}
	return app.Fail(app.CodeRefused, "this directory was brought up as project %s, and would be project %s now: `name:`, or the worktree that .git names, has changed since", strings.Join(up, ", "), t.project).
		hint("look at what changed: a worker may have done it; `workshop -p %s ps --strict` and `workshop -p %s down` work on what was brought up", up[0], up[0])
}

// checkDirectory refuses a directory where the record of the project is of another
// one, which is there: that one's secrets and baseline aren't this one's to replace
// or remove, whatever an engine shows of it.
func (a *program) checkDirectory(t target) error {
	r, err := a.record(t.project)
	if err != nil || r == nil || r.Dir == t.dir || !exists(r.Dir) {
		return nil // what is wrong with a record is said where it is compared
	}
	return engineError(engine.NewForeignError(t.project, "the record of its `up`", t.dir, r.Dir))
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
func (a *program) observe(ctx context.Context, t target) (engine.Engine, engine.Observed, error) {
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
func (a *program) observeOwn(ctx context.Context, t target, asked bool) (engine.Engine, engine.Observed, error) {
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

// look is [program.observeOwn] over a connection that is there.
func (a *program) look(ctx context.Context, e engine.Engine, t target, asked bool) (engine.Observed, error) {
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
			return app.Fail(app.CodeFailed, "project %s has no worker %q", t.project, name).Hint("%s", suggestion(name, all))
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

func notUp(t target) *app.Failure {
	return app.Fail(app.CodeFailed, "project %s %w", t.project, errNotUp).Hint("start it with `workshop up`")
}
