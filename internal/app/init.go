package app

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed init.workshop.yaml.tmpl
var initWorkshop string

//go:embed init.worker.md.tmpl
var initWorker string

// InitOptions say what a new workshop is to have.
type InitOptions struct {
	// Name and Worker are names of the workshop and of its first worker, both valid (see
	// [ValidName]); empty: they come from the directory and from what is found.
	Name, Worker string
	// Bare looks at nothing.
	Bare bool
	// From is a devcontainer.json, .mcp.json or compose.yaml that is imported.
	From string
	// DryRun writes nothing.
	DryRun bool
}

// Inited is a new workshop.
type Inited struct {
	// Wrote are the paths of what was written, also where the next failed.
	Wrote []string
	// Text is that of workshop.yaml.
	Text []byte
	// Chosen says what was found, and what the file has for it.
	Chosen []Chosen
	// Next are command lines to go on with.
	Next []string
}

// Chosen is a line about what was found, as text for a terminal.
type Chosen struct{ Path, What, Gives string }

// newFile is a file to write.
type newFile struct {
	path string
	text []byte
}

// Init writes a workshop.yaml, with a worker, into a directory, which it makes if
// needed. It overwrites nothing.
func (env *Env) Init(ctx context.Context, dir string, o InitOptions) (Inited, error) {
	var in Inited
	if f := env.noProject(dir); f != nil {
		return in, f.Hint("name a directory of the project: `workshop init ~/my-workshop`")
	}
	if existing, ok := fileIn(dir); ok {
		return in, notOverwritten(env.Shown(existing))
	}
	if o.Name == "" {
		o.Name = nameOf(dir)
	}
	files, err := env.initFiles(ctx, &in, dir, o)
	if err != nil {
		return in, err
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.path)); err == nil {
			return in, notOverwritten(env.Shown(filepath.Join(dir, f.path)))
		}
	}
	for _, f := range files {
		if o.DryRun {
			break
		}
		path := filepath.Join(dir, f.path)
		if err := writeNew(dir, f.path, f.text); errors.Is(err, fs.ErrExist) {
			return in, notOverwritten(env.Shown(path))
		} else if err != nil {
			return in, fmt.Errorf("init: %s: %w", env.Shown(path), PlainPathError(err))
		}
		in.Wrote = append(in.Wrote, path)
	}
	return in, nil
}

// nameOf is the name of a new workshop in a directory.
func nameOf(dir string) string { return ProjectSafe(filepath.Base(dir), "my-workshop") }

// noProject says why a directory can't be that of a project; nil: it can.
func (env *Env) noProject(dir string) *Failure {
	switch real := RealPath(dir); real {
	case RealPath(env.Home):
		return Fail(CodeFailed, "%s is your home directory, and no worker gets that (B7)", env.Shown(dir))
	case filepath.Dir(real):
		return Fail(CodeFailed, "%s is the whole file system, and no worker gets that (B7)", env.Shown(dir))
	}
	return nil
}

// initFiles is what is written: the proposal for what is there, or in a directory with
// nothing that is known a template.
func (env *Env) initFiles(ctx context.Context, in *Inited, dir string, o InitOptions) ([]newFile, error) {
	if o.From != "" {
		p, err := env.imported(dir, o)
		if err != nil {
			return nil, err
		}
		return env.draftFiles(ctx, in, p, dir, o)
	}
	if !o.Bare {
		if p := env.propose(dir, nil); len(p.found.Findings) > 0 {
			return env.draftFiles(ctx, in, p, dir, o)
		}
	}
	o.Worker = cmp.Or(o.Worker, "greeter")
	fill := strings.NewReplacer("{{.Name}}", o.Name, "{{.Worker}}", o.Worker)
	in.Text = []byte(fill.Replace(initWorkshop))
	in.Next = []string{"workshop exec " + o.Worker + " -- ls -l /workspace"}
	return []newFile{{"workshop.yaml", in.Text}, {filepath.Join("workers", o.Worker+".md"), []byte(fill.Replace(initWorker))}}, nil
}

func notOverwritten(path string) *Failure {
	return Fail(CodeFailed, "%s exists and is not overwritten", path).
		Hint("move it away, or name another directory: `workshop init DIR`")
}

// writeNew makes a file in a directory that must not exist. Symbolic links of a
// repository lead it nowhere else.
func writeNew(dir, name string, data []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = root.Remove(name) // a part of it is worth nothing
	}
	return err
}
