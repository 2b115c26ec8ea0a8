package cli

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/boundedfile"
	"github.com/llmdo/workshop/internal/facts"
)

// fileNames are looked for in this order, in one directory after the other.
var fileNames = []string{"workshop.yaml", "workshop.yml"}

// findFile gives the absolute path of the workshop file: --file, else the
// first of [fileNames] here or in a parent directory.
func (a *program) findFile() (string, error) {
	if a.set.file != "" {
		path := a.abs(a.set.file)
		info, err := os.Stat(path)
		if err != nil {
			return "", app.Fail(app.CodeInvalid, "workshop file %s: %w", a.set.file, plainPathError(err))
		}
		if info.Mode().IsRegular() {
			return path, nil
		}
		if !info.IsDir() {
			return "", app.Fail(app.CodeInvalid, "workshop file %s: %w", a.set.file, boundedfile.KindError(info.Mode().Type()))
		}
		if file, ok := fileIn(path); ok {
			return file, nil
		}
		return "", noFile("no workshop.yaml in "+a.set.file, path)
	}
	for dir := a.Dir; ; dir = filepath.Dir(dir) {
		if path, ok := fileIn(dir); ok {
			if dir != a.Dir {
				return path, a.checkOwner(path)
			}
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", noFile("no workshop.yaml here or in a parent directory", a.Dir)
		}
	}
}

// checkOwner refuses a file of a parent directory that is another user's: in /tmp,
// say, anybody could write one for what is below. Root's, and those of the working
// directory's owner, are taken; who calls sudo is the caller.
func (a *program) checkOwner(path string) error {
	owner, known := facts.OwnerOf(path)
	trusted := []int{0, os.Getuid()}
	if here, ok := facts.OwnerOf(a.Dir); ok {
		trusted = append(trusted, here)
	}
	if uid, ok := facts.SudoUID(a.Lookup); ok && os.Getuid() == 0 {
		trusted = append(trusted, uid)
	}
	if !known || slices.Contains(trusted, owner) {
		return nil
	}
	return app.Fail(app.CodeRefused, "%s belongs to another user (uid %d)", printable(a.shown(path)), owner).
		hint("it lies in a parent directory; if it is meant, name it with `-f %s`", printable(a.shown(path)))
}

// fileIn looks in one directory. What is no regular file is found too, and
// refused where it is read: in its place, another one of a parent directory isn't
// meant.
func fileIn(dir string) (string, bool) {
	for _, name := range fileNames {
		if path := filepath.Join(dir, name); exists(path) {
			return path, true
		}
	}
	return "", false
}

func noFile(message, dir string) *app.Failure {
	f := app.Fail(app.CodeInvalid, "%s", message)
	if _, err := os.Stat(filepath.Join(dir, "compose.yaml")); err == nil {
		f.Hint("a compose.yaml is not read; a workshop has a file of its own")
	}
	return f.Hint("run `workshop init` to write one, or name it with `-f PATH`")
}

// plainPathError leaves out the operation and the path, which the message
// around it says already.
func plainPathError(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}
