package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/model/service"
	"github.com/llmdo/workshop/internal/model/store"
	"github.com/llmdo/workshop/workshop"
)

// Model is a service of `models` with the project of its room.
type Model struct {
	*Project
	Service *workshop.ModelService
}

// modelsDir is the user's directory of models; empty: there is no home directory.
func (env *Env) modelsDir() string {
	if dir := env.DataDir(); dir != "" {
		return filepath.Join(dir, "models")
	}
	return ""
}

// CheckModels compares the files of a workshop's models with what it says of them, all or
// those of that name, and says all that is wrong. It starts none.
func (env *Env) CheckModels(ctx context.Context, c *Project, only string) error {
	var list diag.List
	for i := range c.Workshop.Models {
		s := &c.Workshop.Models[i]
		if only != "" && s.Name != only {
			continue
		}
		if _, d, err := env.modelFile(ctx, s); err != nil {
			return err
		} else if d != nil {
			list = append(list, *d)
		}
	}
	return env.preflight(c, list.Sorted())
}

// modelFile finds the file of a model and compares it; what is wrong with it is a
// diagnostic.
func (env *Env) modelFile(ctx context.Context, s *workshop.ModelService) (store.Model, *diag.Diagnostic, error) {
	dir := env.modelsDir()
	if dir == "" {
		return store.Model{}, nil, Fail(CodeRefused, "there is no directory of models: neither HOME nor XDG_DATA_HOME is set").Hint("set it: `export HOME=~`")
	}
	wrong := func(code string, at diag.Range, summary, hint string) *diag.Diagnostic {
		return &diag.Diagnostic{Severity: diag.Error, Code: code, Range: at, Summary: summary, Hint: hint}
	}
	path := filepath.Join(dir, s.File.V)
	m, err := store.Find(dir, s.File.V)
	if other, ok := errors.AsType[*store.NotGGUFError](err); ok {
		return m, wrong("model-file", s.File.Source.Range, Printable(other.Error()), "put a model of that form there: llama.cpp reads no other"), nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return m, wrong("model-file", s.File.Source.Range, "the model "+Printable(path)+" is not there", "put the file there: `mkdir -p "+Printable(shellquote.Path(dir))+" && cp "+s.File.V+" "+Printable(shellquote.Path(dir))+"/`"), nil
	}
	if err != nil {
		return m, wrong("model-file", s.File.Source.Range, "the model can't be read: "+Printable(err.Error()), "look at it: `ls -l "+Printable(shellquote.Path(path))+"`"), nil
	}
	if m.Size >= int64(s.Resources.Memory.V) {
		at := s.Resources.Memory.Source.Range
		if at.Filename == "" {
			at = s.File.Source.Range
		}
		return m, wrong("model-memory", at, fmt.Sprintf("the model has %v, and its server may have %v of memory", mebibytes(m.Size), s.Resources.Memory.V),
			fmt.Sprintf("write resources: {memory: %v}, or more, or take a smaller model", mebibytes(m.Size+m.Size/4))), nil
	}
	said := false
	err = m.Verify(ctx, s.SHA256.V, env.sumsFile(), func(int) {
		if !said {
			said = true
			env.say("reading %s, to compare its sha256", Printable(path))
		}
	})
	if other, ok := errors.AsType[*store.HashError](err); ok {
		return m, wrong("model-sum", s.SHA256.Source.Range, "the model "+Printable(path)+" has another sha256: "+other.Got,
			"get the file that the workshop means; if it is this one, write that sum"), nil
	}
	if err != nil && ctx.Err() == nil {
		err = Fail(CodeRefused, "the sha256 of a model: %w", err)
	}
	return m, nil, err
}

// mebibytes rounds a number of bytes up.
func mebibytes(n int64) workshop.Size { return workshop.Size((n + 1<<20 - 1) &^ (1<<20 - 1)) }

// sumsFile is where the sums of models are kept that were read; empty: nowhere.
func (env *Env) sumsFile() string {
	if dir := env.StateDir(); dir != "" {
		return filepath.Join(dir, "models", "sums.json")
	}
	return ""
}

// Model makes the project of a model's room; empty: of the only one. Its file must be what
// the workshop says.
func (env *Env) Model(ctx context.Context, c *Project, name string) (*Model, error) {
	s, err := c.ModelService(name)
	if err != nil {
		return nil, err
	}
	file, wrong, err := env.modelFile(ctx, s)
	if err != nil {
		return nil, err
	}
	if wrong != nil {
		return nil, env.preflight(c, diag.List{*wrong})
	}
	source := *c.Source
	source.Workshop = service.Room(c.Workshop, s, file.Path)
	source.Diagnostics = nil
	compiled, err := compileWorkshop(source.Workshop)
	if err != nil {
		return nil, err
	}
	ref := env.modelRef(c, s)
	ref.image = imageInFiles(source.Workshop)
	return &Model{Service: s, Project: &Project{modelOf: c.Name, Source: &source, Compiled: compiled, ProjectRef: ref}}, nil
}

// modelRef is the project of a model's room.
func (env *Env) modelRef(c *Project, s *workshop.ModelService) ProjectRef {
	ref := c.ProjectRef
	ref.Name = shorten(c.Name + service.Suffix(s.Name))
	return ref
}

// ModelService is one of a workshop's; empty: the only one.
func (c *Project) ModelService(name string) (*workshop.ModelService, error) {
	all, names := c.Workshop.Models, c.ModelNames()
	for i := range all {
		if all[i].Name == name || name == "" && len(all) == 1 {
			return &all[i], nil
		}
	}
	switch {
	case len(all) == 0:
		return nil, Fail(CodeUsage, "%s has no models", c.ShownFile(c.Base())).Hint("docs/local-models.md shows how to write one")
	case name == "":
		return nil, Fail(CodeUsage, "%s has %d models: which one?", c.ShownFile(c.Base()), len(all)).Hint("one of %s", strings.Join(names, ", "))
	}
	return nil, Fail(CodeUsage, "no model %s in %s", quoted(name), c.ShownFile(c.Base())).Hint("%s", Suggestion(name, names))
}

// ModelNames are those of all models; s may be nil.
func (s *Source) ModelNames() (names []string) {
	if s == nil {
		return nil
	}
	for i := range s.Workshop.Models {
		names = append(names, s.Workshop.Models[i].Name)
	}
	return names
}

// modelKey is the key of a room's server, the same until `models down`; empty: there is none.
func (env *Env) modelKey(project string) (string, error) {
	path, err := env.modelKeyFile(project)
	if err != nil {
		return "", err
	}
	b, err := boundedfile.Read(path, 1<<10)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", Fail(CodeFailed, "the key of the model: %w", err).Hint("remove it: `rm %s`", Printable(path))
	}
	return strings.TrimSpace(string(b)), nil
}

// makeModelKey is [Env.modelKey], and makes one where there is none. Who calls it has the
// project's lock: else two commands make two.
func (env *Env) makeModelKey(project string) (string, error) {
	key, err := env.modelKey(project)
	if err != nil || key != "" {
		return key, err
	}
	path, err := env.modelKeyFile(project)
	if err != nil {
		return "", err
	}
	key = rand.Text()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", Fail(CodeFailed, "the key of the model: %w", err)
	}
	if err := atomicfile.Write(path, []byte(key+"\n"), 0o600); err != nil {
		return "", Fail(CodeFailed, "the key of the model: %w", err)
	}
	return key, nil
}

func (env *Env) modelKeyFile(project string) (string, error) {
	dir := env.StateDir()
	if dir == "" {
		return "", Fail(CodeRefused, "no directory to keep the key of a model in: neither HOME nor XDG_STATE_HOME is set").Hint("set it: `export HOME=~`")
	}
	return filepath.Join(dir, "models", project+".key"), nil
}

// forgetModelKey removes the key of a room's server, if the project is one.
func (env *Env) forgetModelKey(project string) error {
	path, err := env.modelKeyFile(project)
	if err != nil {
		return nil // there is nowhere to keep one
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// modelRooms are the projects of rooms of a workshop's models that an `up` noted.
func (env *Env) modelRooms(t ProjectRef) []ProjectRef {
	records, _ := facts.Records(env.recordsDir()) // what can't be read is for doctor
	var out []ProjectRef
	for _, r := range records {
		if r.ModelOf == t.Name && !r.Down && r.Dir == t.Dir {
			ref := t
			ref.Name = r.Project
			out = append(out, ref)
		}
	}
	sortfunc.Stable(out, func(a, b ProjectRef) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// checkRoom refuses to replace the room of a model by a workshop that has its name, and the
// other way round. noted is the record of that name.
func (c *Project) checkRoom(noted *facts.Record) error {
	if noted == nil || noted.Down || noted.Dir != c.Dir || noted.ModelOf == c.modelOf {
		return nil
	}
	what := "a workshop"
	if noted.ModelOf != "" {
		what = "the room of a model of project " + noted.ModelOf
	}
	return Fail(CodeRefused, "project %s is %s of this directory", noted.Project, what).
		Hint("give one of them another name, or end what is up: `workshop -p %s down`", noted.Project)
}

// DownModels removes the rooms of a workshop's models, all or that of one.
func (env *Env) DownModels(ctx context.Context, c *Project, name string) error {
	rooms := env.modelRooms(c.ProjectRef)
	if name != "" {
		s, err := c.ModelService(name)
		if err != nil {
			return err
		}
		only := env.modelRef(c, s).Name
		rooms = slices.DeleteFunc(rooms, func(r ProjectRef) bool { return r.Name != only })
	}
	if len(rooms) == 0 {
		env.say("no model is up")
	}
	return env.downRooms(ctx, rooms)
}

func (env *Env) downRooms(ctx context.Context, rooms []ProjectRef) error {
	var all error
	for _, r := range rooms {
		if _, err := env.downOf(ctx, r, DownOptions{AcceptWatched: true}); err != nil {
			all = errors.Join(all, err)
		}
	}
	return all
}
