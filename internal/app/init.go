package app

import (
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

// InitOptions are the names of a new workshop and of its first worker, both valid
// (see [ValidName]).
type InitOptions struct{ Name, Worker string }

// Init writes a workshop.yaml and a worker into a directory, which it makes if
// needed, and returns the paths of what it wrote, also where the next failed. It
// overwrites nothing.
func (env *Env) Init(dir string, o InitOptions) (wrote []string, err error) {
	files := []struct{ path, template string }{
		{"workshop.yaml", initWorkshop},
		{filepath.Join("workers", o.Worker+".md"), initWorker},
	}
	if RealPath(dir) == RealPath(env.Home) {
		return nil, Fail(CodeFailed, "%s is your home directory, and no worker gets that (B7)", env.Shown(dir)).
			Hint("name a directory of the project: `workshop init my-workshop`")
	}
	if existing, ok := fileIn(dir); ok {
		return nil, notOverwritten(env.Shown(existing))
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.path)); err == nil {
			return nil, notOverwritten(env.Shown(filepath.Join(dir, f.path)))
		}
	}
	fill := strings.NewReplacer("{{.Name}}", o.Name, "{{.Worker}}", o.Worker)
	for _, f := range files {
		path := filepath.Join(dir, f.path)
		if err := writeNew(dir, f.path, []byte(fill.Replace(f.template))); errors.Is(err, fs.ErrExist) {
			return wrote, notOverwritten(env.Shown(path))
		} else if err != nil {
			return wrote, fmt.Errorf("init: %s: %w", env.Shown(path), err)
		}
		wrote = append(wrote, path)
	}
	return wrote, nil
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
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
