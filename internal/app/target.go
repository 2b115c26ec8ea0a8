package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// ProjectRef names a project on an engine. It needs the workshop's name only, so
// that a file with a mistake in it doesn't keep anybody from stopping what runs.
type ProjectRef struct {
	Name string
	// Dir is the absolute project directory with symlinks resolved, as the
	// engine's objects name it; empty with -p and no file.
	Dir string
	// File is the absolute path of the workshop file; empty with -p and no file.
	File string
	// isolation is what the file says; empty: nothing.
	isolation workshop.Isolation
	// image is one among this machine's files, which only the namespace
	// engine reads; empty: none.
	image string
	// kernels are those that its workers need, other than this machine's.
	kernels neededKernels
	// run is the workshop of a run; nil: it is none.
	run *Source
}

// Find finds the project that the caller works on.
func (env *Env) Find(ctx context.Context) (ProjectRef, error) {
	named := env.Settings.Project != "" && env.Settings.File == "" // by -p alone
	file, err := env.FindFile()
	if err != nil && !named {
		return ProjectRef{}, env.hintRecorded(err)
	}
	t := ProjectRef{File: file}
	name := ""
	if file != "" {
		t.Dir = RealPath(filepath.Dir(file))
		name, t.isolation = quickLook(file)
	}
	if name == "" && env.Settings.Project == "" {
		s, err := env.Load(ctx)
		if err != nil {
			return t, env.hintRecorded(err)
		}
		name, t.isolation = s.Workshop.Name.V, s.Workshop.Isolation.V
	}
	if t.Name, err = env.projectName(name, t.Dir); err != nil {
		return t, err
	}
	if file != "" {
		if err := env.checkHidden(t); err != nil {
			return t, err
		}
	}
	if named {
		// Its file may be gone, and be found further up then.
		r, err := env.Record(t.Name)
		if err == nil && r != nil && r.Dir != t.Dir && (file == "" || subpath.Within(RealPath(env.Dir), r.Dir)) {
			t.Dir, t.File = r.Dir, ""
		}
	}
	return t, nil
}

// recordedHere are the projects that are up, from the working directory or one above
// it, nearest first.
func (env *Env) recordedHere(all []*facts.Record) []*facts.Record {
	here := RealPath(env.Dir)
	all = slices.DeleteFunc(slices.Clone(all), func(r *facts.Record) bool {
		return r.Down || r.OneOff || r.ModelOf != "" || !subpath.Within(here, r.Dir)
	})
	sortfunc.Stable(all, func(x, y *facts.Record) int { return len(y.Dir) - len(x.Dir) })
	return all
}

// hintUpFrom adds to a failure to find the workshop's file where the project that -p
// names was brought up from.
func (env *Env) hintUpFrom(err error) error {
	f, ok := errors.AsType[*Failure](err)
	if !ok || f.Code != CodeInvalid || env.Settings.Project == "" || env.Settings.File != "" {
		return err
	}
	r, _ := env.Record(env.Settings.Project)
	if r == nil {
		return err
	}
	file, ok := fileIn(r.Dir)
	if !ok {
		return err
	}
	project := ""
	if !r.Named {
		project = "-p " + r.Project + " "
	}
	f.Hints = nil
	return f.Hint("%s was brought up from %s: `workshop -f %s %sup`", r.Project, Printable(r.Dir), Printable(shellquote.Quote(file)), project)
}

// hintRecorded adds to a failure with the workshop's file how to go on without it:
// a worker may have removed or spoiled it (B60).
func (env *Env) hintRecorded(err error) error {
	all, _ := facts.Records(env.recordsDir())
	f, ok := errors.AsType[*Failure](err)
	up := env.recordedHere(all)
	if !ok || len(up) == 0 {
		return err
	}
	hint := fmt.Sprintf("project %[1]s was brought up from %[2]s: `workshop -p %[1]s exec`, `workshop -p %[1]s logs`, `workshop -p %[1]s ps --strict` and `workshop -p %[1]s down` work without the file", up[0].Project, Printable(up[0].Dir))
	if !slices.Contains(f.Hints, hint) { // [Env.Load] may have added it
		f.Hints = append(f.Hints, hint)
	}
	return err
}

// checkHidden refuses a file by which a worker would hide what runs, and what it
// wrote, from who asks for it without a name (B8, B60): a nearer workshop.yaml than
// the project's, none at all below another one, a `.git` file that names a worktree,
// another `name:`.
func (env *Env) checkHidden(t ProjectRef) error {
	all, err := facts.Records(env.recordsDir())
	if err != nil && env.Settings.Project == "" {
		return Fail(CodeFailed, "%w", err).Hint("`workshop -p NAME down` removes the record of a project")
	}
	if env.Settings.File == "" {
		if by := facts.WrittenBy(t.File, all); by != nil {
			return Fail(CodeRefused, "%s is new or changed since project %s was brought up from %s, whose workers may write it (B8)", Printable(env.Shown(t.File)), by.Project, Printable(by.Dir)).
				Hint("look at it: `-f %s` takes it if it is yours, `workshop -f %s ps --strict` shows what is up", Printable(shellquote.Path(env.Shown(t.File))), Printable(shellquote.Path(env.Shown(by.Dir))))
		}
	}
	if env.Settings.Project != "" {
		return nil
	}
	if here := env.recordedHere(all); env.Settings.File == "" && len(here) > 0 && len(here[0].Dir) > len(t.Dir) {
		p := here[0].Project
		return Fail(CodeRefused, "project %s was brought up from %s, which has no workshop.yaml any more; %s is another's", p, Printable(here[0].Dir), Printable(env.Shown(t.File))).
			Hint("look at what changed: a worker may have done it; `workshop -p %s ps --strict` and `workshop -p %s down` work on what was brought up", p, p)
	}
	var up []string
	for _, r := range all {
		if r.Named && !r.Down && r.Dir == t.Dir {
			up = append(up, r.Project)
		}
	}
	if len(up) == 0 || slices.Contains(up, t.Name) {
		return nil
	}
	return Fail(CodeRefused, "this directory was brought up as project %s, and would be project %s now: `name:`, or the worktree that .git names, has changed since", strings.Join(up, ", "), t.Name).
		Hint("look at what changed: a worker may have done it; `workshop -p %s ps --strict` and `workshop -p %s down` work on what was brought up", up[0], up[0])
}

// CheckDirectory refuses a directory where the record of the project is of another
// one, which is there: that one's secrets and baseline aren't this one's to replace
// or remove, whatever an engine shows of it. Of a project that is down the record is
// kept for what changed, which is named.
func (env *Env) CheckDirectory(ctx context.Context, t ProjectRef) error {
	r, err := env.Record(t.Name)
	if err != nil || r == nil || r.Dir == t.Dir || !Exists(r.Dir) {
		return nil // what is wrong with a record is said where it is compared
	}
	refusal := engine.NewForeignError(t.Name, t.Dir, r.Dir)
	if !r.Down {
		return env.foreignError(t, refusal)
	}
	if !env.CompareWatched(ctx, t.Name, engine.Observed{}) {
		return nil
	}
	return Fail(CodeRefused, "%s: what changed there isn't accepted (B8)", refusal.What()).
		Hint("to have one of its own here, add `-p %s`", refusal.Suggest).
		Hint("to accept the files there as they are: `cd %s && workshop -p %s down --accept-watched`", Printable(shellquote.Quote(r.Dir)), t.Name)
}

// foreignError is [EngineError] for what a project of another directory causes: where
// one of this directory is up under another name, that one is meant.
func (env *Env) foreignError(t ProjectRef, err error) error {
	e, ok := errors.AsType[*engine.ForeignError](err)
	if !ok {
		return EngineError(err)
	}
	all, _ := facts.Records(env.recordsDir())
	i := slices.IndexFunc(all, func(r *facts.Record) bool {
		return r.Dir == t.Dir && !r.Down && !r.OneOff && r.ModelOf == "" && r.Project != t.Name
	})
	if i < 0 {
		return EngineError(err)
	}
	return Fail(e.ExitCode(), "%s", e.What()).Hint("this directory's project is %[1]s: add `-p %[1]s`", all[i].Project)
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
	if !ValidName(name) {
		name = ""
	}
	return name, isolation
}

// services checks names of the caller against what exists. It suggests those of the
// roles; none: any.
func (env *Env) services(ctx context.Context, t ProjectRef, seen engine.Observed, names []string, roles ...compose.Role) error {
	if len(seen.Containers) == 0 {
		return notUp(t)
	}
	var known []string
	for _, c := range seen.Containers {
		if len(roles) == 0 || slices.ContainsFunc(roles, func(r compose.Role) bool { return r.String() == c.Role }) {
			known = append(known, c.Service)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, name := range names {
		if slices.ContainsFunc(seen.Containers, func(c engine.Container) bool { return c.Service == name }) {
			continue
		}
		f := Fail(CodeFailed, "project %s has no worker %q", t.Name, name)
		if t.File != "" {
			if s, err := env.Read(ctx, t.File); err == nil && s.Workshop != nil && s.Worker(name) != nil {
				return f.Hint("it is in %s, but not up: `workshop up`", env.Shown(t.File))
			}
		}
		return f.Hint("%s", Suggestion(name, known))
	}
	return nil
}

// RealPath resolves symlinks; a path that can't be resolved stays as it is.
func RealPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// ErrNotUp is what [notUp] wraps.
var ErrNotUp = errors.New("is not up")

// notUp is a project of which nothing is there.
func notUp(t ProjectRef) *Failure {
	return Fail(CodeFailed, "project %s %w", t.Name, ErrNotUp).Hint("start it with `workshop up`")
}
