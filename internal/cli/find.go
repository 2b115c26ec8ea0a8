package cli

import (
	"os"
	"path/filepath"
)

// fileNames are looked for in this order, in one directory after the other.
var fileNames = []string{"workshop.yaml", "workshop.yml"}

// findFile gives the absolute path of the workshop file: --file, else the
// first of [fileNames] here or in a parent directory.
func (a *app) findFile() (string, error) {
	if a.set.file != "" {
		path := a.abs(a.set.file)
		info, err := os.Stat(path)
		if err != nil {
			return "", fail(codeInvalid, "workshop file %s: %w", a.set.file, plainPathError(err))
		}
		if info.Mode().IsRegular() {
			return path, nil
		}
		if !info.IsDir() {
			return "", fail(codeInvalid, "workshop file %s is not a regular file", a.set.file)
		}
		if file, ok := fileIn(path); ok {
			return file, nil
		}
		return "", noFile("no workshop.yaml in "+a.set.file, path)
	}
	for dir := a.Dir; ; dir = filepath.Dir(dir) {
		if path, ok := fileIn(dir); ok {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", noFile("no workshop.yaml here or in a parent directory", a.Dir)
		}
	}
}

// fileIn looks in one directory.
func fileIn(dir string) (string, bool) {
	for _, name := range fileNames {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, true
		}
	}
	return "", false
}

func noFile(message, dir string) *failure {
	f := fail(codeInvalid, "%s", message)
	if _, err := os.Stat(filepath.Join(dir, "compose.yaml")); err == nil {
		f.hint("a compose.yaml is not read; a workshop has a file of its own")
	}
	return f.hint("run `workshop init` to write one, or name it with `-f PATH`")
}

// plainPathError leaves out the operation and the path, which the message
// around it says already.
func plainPathError(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}
