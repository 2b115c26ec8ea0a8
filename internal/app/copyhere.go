package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/hostlink"
)

// openHere opens a directory from which a path here is reached, and returns the path in it. If
// the path leads into what workers of any project may write, that is the directory: a symbolic
// link that a worker has made, or makes at the same time, doesn't lead out of it. A link at the
// end of another path is followed if that is meant. The caller closes the directory.
func (env *Env) openHere(given string, follow bool) (root *os.Root, name string, err error) {
	all, err := facts.Records(env.recordsDir())
	if err != nil {
		return nil, "", Fail(CodeFailed, "cp: %w", err).Hint("`workshop -p NAME down` removes the record of a project")
	}
	file := env.Abs(given)
	way, last := filepath.Dir(file), filepath.Base(file)
	if follow || way == file {
		way, last = file, ""
	}
	dir, below, err := hostlink.Until(way, func(part string) bool {
		return slices.ContainsFunc(all, func(r *facts.Record) bool { return slices.Contains(r.Roots, part) })
	})
	if err != nil {
		return nil, "", Fail(CodeFailed, "cp: %s: %w", given, err)
	}
	name = filepath.Join(filepath.FromSlash(below), last)
	if name == "" && filepath.Dir(dir) != dir {
		dir, name = filepath.Dir(dir), filepath.Base(dir)
	}
	if name == "" {
		name = "."
	}
	if root, err = os.OpenRoot(dir); err != nil {
		return nil, "", Fail(CodeFailed, "cp: %s: %w", given, PlainPathError(err))
	}
	return root, name, nil
}

// openTarget opens the directory that a copy goes to. The name is what the copy gets in it;
// empty: its own. The caller closes it.
func (env *Env) openTarget(to string) (dir *os.Root, name string, err error) {
	root, name, err := env.openHere(to, true)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	info, err := root.Stat(name)
	switch {
	case err == nil && info.IsDir():
		dir, err = root.OpenRoot(name)
		name = ""
	case err != nil && !errors.Is(err, fs.ErrNotExist):
	case strings.HasSuffix(to, "/"):
		return nil, "", Fail(CodeFailed, "cp: %s: not a directory", to)
	default:
		dir, err = root.OpenRoot(filepath.Dir(name))
		name = filepath.Base(name)
	}
	if err != nil {
		return nil, "", copyHereError(root, to, err)
	}
	return dir, name, nil
}

// copyHereError is the error of a path here, given to a method of the root.
func copyHereError(root *os.Root, given string, err error) error {
	if strings.HasSuffix(err.Error(), "path escapes from parent") { // os: errPathEscapes
		return Fail(CodeRefused, "cp: %s: a symbolic link leads out of %s, where workers may write", given, root.Name()).
			Hint("name the place that is meant, or remove the link")
	}
	return Fail(CodeFailed, "cp: %s: %w", given, PlainPathError(err))
}
