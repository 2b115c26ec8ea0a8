package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/workshop"
)

// Load finds and reads the workshop of a command. Problems are an
// event; with errors among them it fails with code 3, or 4.
func (env *Env) Load(ctx context.Context) (*Source, error) {
	s, err := env.readFound(ctx)
	if err != nil {
		return nil, err
	}
	return s, env.loaded(s)
}

// loaded says what was found in a file that was read, and fails where that is an error.
func (env *Env) loaded(s *Source) error {
	env.ofFile(s)
	if n := s.Diagnostics.Count(diag.Error); n > 0 {
		file := s.Path
		if !slices.ContainsFunc(s.onlyErrors().Diagnostics, func(d diag.Diagnostic) bool { return d.Code != "bad-lock" }) {
			file = s.lockFile()
		}
		code := codeOf(s.Diagnostics)
		if env.fetches && env.resolver == nil && codeOf(s.onlyErrors().Diagnostics) == CodeInvalid && slices.ContainsFunc(s.Diagnostics, differsFromLock) {
			code = CodeRefused // nothing runs that isn't what the lock has
		}
		is := "is invalid"
		if !slices.ContainsFunc(s.onlyErrors().Diagnostics, func(d diag.Diagnostic) bool { return !strings.HasPrefix(d.Code, "source-") }) {
			is = "can't be loaded" // what it names can't
		}
		err := Fail(code, "%s %s: %s%s", env.Shown(file), is, Count(n, "error"), env.spoiled(s))
		if env.Warnings != WarnNone { // it is about the file, as `up` is
			return err
		}
		return env.hintRecorded(err)
	}
	return nil
}

// differsFromLock reports whether a source isn't what the lock says.
func differsFromLock(d diag.Diagnostic) bool {
	return d.Code == "source-not-locked" || d.Code == "source-changed"
}

// spoiled says of a file that can't be loaded that a worker may have made it so; empty:
// by the records none did.
func (env *Env) spoiled(s *Source) string {
	if list, err := env.redefined("", s.definition()); err == nil && len(list) > 0 {
		return "; " + env.shownClipped(list[0].Path) + " changed since `up`, and a worker may have written that (B8)"
	}
	return ""
}

// readFound finds and reads the workshop, problems and all.
func (env *Env) readFound(ctx context.Context) (*Source, error) {
	file, err := env.FindFile()
	if err != nil {
		return nil, env.hintUpFrom(err)
	}
	return env.Read(ctx, file)
}

// ofFile says what was found in a file that was read, of warnings those that the
// command says.
func (env *Env) ofFile(s *Source) {
	if env.Warnings == WarnAll || env.Warnings == WarnNew && !env.isNoted(s) {
		env.problems(s)
	} else {
		env.problems(s.onlyErrors())
	}
}

// isNoted reports whether a file, with what it refers to, is as the last `up` of its
// project noted it.
func (env *Env) isNoted(s *Source) bool {
	changed, ok := env.changedFiles(s)
	return ok && len(changed) == 0
}

// changedFiles are those of a workshop that are not as the last `up` of its project
// noted them; not ok where nothing was noted.
func (env *Env) changedFiles(s *Source) (paths []string, ok bool) {
	if s.Workshop == nil {
		return nil, false
	}
	name, err := env.projectName(s.Workshop.Name.V, s.Root())
	if err != nil {
		return nil, false
	}
	r, err := env.Record(name)
	if err != nil || r == nil {
		return nil, false
	}
	for p, text := range s.definition().Known {
		if noted, ok := r.Definition[p]; !ok || noted != text {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths, true
}

// onlyErrors is s without other problems.
func (s *Source) onlyErrors() *Source {
	seen := *s
	seen.Diagnostics = slices.DeleteFunc(slices.Clone(s.Diagnostics), func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
	return &seen
}

// problems says what was found in a file, or on this machine.
func (env *Env) problems(s *Source) {
	if env.Warned {
		s = s.onlyErrors()
	}
	if len(s.Diagnostics) == 0 || env.Events == nil {
		return
	}
	list, texts := s.Shown()
	env.event(Event{Kind: Problems, Diagnostics: list, Sources: texts})
}

// Project is a workshop on its way to an engine.
type Project struct {
	ProjectRef
	*Source
	Compiled *compose.Compiled
	// NotChecked reports whether a source was not searched to its end. Only after
	// Prepare.
	NotChecked bool
	// emulated: virtual machines of it that run have no KVM ([Project.startedLike]).
	emulated bool
	// modelOf is the project whose model's room it is, which has that file alone; empty: it
	// is none.
	modelOf string
	// ports are the numbers that [Change.Make] leased; nil before.
	ports map[compose.PortKey]uint16
	// missing is what a run needs on this machine. Only after Prepare.
	missing *facts.Missing
	// place is the engine that it was prepared for. Only after Prepare.
	place *facts.Place
}

// Compile loads and compiles the workshop, and checks that the promises hold
// in the result before anything else sees it.
func (env *Env) Compile(ctx context.Context) (*Project, error) {
	s, err := env.Load(ctx)
	if err != nil {
		return nil, err
	}
	return env.compileSource(s)
}

// CompileToRun is Compile of what is about to run: its sources are fetched where they
// aren't there, as the lock has them.
func (env *Env) CompileToRun(ctx context.Context) (*Project, error) {
	env.fetches = true
	defer func() { env.fetches = false }()
	return env.Compile(ctx)
}

// compileSource is Compile for a source that was read, without errors.
func (env *Env) compileSource(s *Source) (*Project, error) {
	if err := s.Runs(); err != nil {
		return nil, err
	}
	c, err := compileWorkshop(s.pinned())
	if err != nil {
		return nil, err
	}
	name, err := env.projectName(s.Workshop.Name.V, s.Root())
	if err != nil {
		return nil, err
	}
	whole := &Project{Source: s, Compiled: c, ProjectRef: ProjectRef{
		Name: name, Dir: RealPath(s.Root()), File: s.Path,
		isolation: s.Workshop.Isolation.V, image: imageInFiles(s.Workshop), kernels: kernelsOf(s.Workshop),
	}}
	return whole, env.checkHidden(whole.ProjectRef)
}

// Runs refuses files that others are made of, which have no container of their own.
func (s *Source) Runs() error {
	c := &s.Workshop.Container
	if !s.Workshop.Needs && (c.Image.V != "" || c.Build != nil) {
		return nil
	}
	return Fail(CodeInvalid, "%s has no image: it is for other workshops, which import or extend it", s.Base()).
		Hint("`workshop add SOURCE` in a project takes it over; docs/sharing.md shows how")
}

// codeOf is the exit code of problems of a file: 3, or 4 where a
// file asks for what only the caller may decide.
func codeOf(list diag.List) int {
	code := CodeOK
	for _, d := range list {
		switch {
		case d.Severity != diag.Error:
		case d.Code == "process-isolation", d.Code == "import-needs", d.Code == "source-refused":
			code = CodeRefused
		case d.Code == "source-not-fetched":
			code = max(code, CodeFailed)
		default:
			code = max(code, CodeInvalid)
		}
	}
	return code
}

// compileWorkshop compiles and checks the result.
func compileWorkshop(w *workshop.Workshop) (*compose.Compiled, error) {
	c, err := compose.Compile(w)
	if err != nil {
		return nil, Fail(CodeFailed, "compile: %w", err)
	}
	if err := checkPromises(c); err != nil {
		return nil, err
	}
	return c, nil
}

// checkPromises runs the check of B1–B12 on what is about to be used.
func checkPromises(c *compose.Compiled) error {
	violations := compose.Check(c)
	if len(violations) == 0 {
		return nil
	}
	text := ""
	for _, v := range violations {
		text += fmt.Sprintf("\n%v", v)
	}
	return Fail(CodeRefused, "the compiled project breaks %s of the boundary:%s", Count(len(violations), "promise"), text).
		Hint("this is a fault of the program; nothing was started")
}

// CheckWorkers checks names of the caller against the workshop.
func (s *Source) CheckWorkers(names []string) error {
	for _, name := range names {
		if s.Worker(name) == nil {
			return Fail(CodeUsage, "no worker %q in %s", name, s.Base()).Hint("%s", Suggestion(name, s.WorkerNames()))
		}
	}
	return nil
}

// WorkerNames are those of all workers, in the file's order.
func (s *Source) WorkerNames() []string {
	all := make([]string, len(s.Workshop.Workers))
	for i, w := range s.Workshop.Workers {
		all[i] = w.Name
	}
	return all
}

// Worker finds one by name; nil if there is none.
func (s *Source) Worker(name string) *workshop.Worker {
	for i := range s.Workshop.Workers {
		if s.Workshop.Workers[i].Name == name {
			return &s.Workshop.Workers[i]
		}
	}
	return nil
}

// asRunning is the project under its name on the engine and with its
// directory, and the programs of `image: host`: all that is needed of the machine to
// restart what is there.
func (c *Project) asRunning() *compose.Compiled {
	running, project := *c.Compiled, *c.Compiled.Project
	project.Name = c.Name
	running.Project = &project
	running.Facts = &compose.Facts{Project: c.Name, ProjectDir: c.ProjectRef.Dir, HostPaths: facts.HostPaths("/")}
	return &running
}
