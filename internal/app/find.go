package app

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// fileNames are looked for in this order, in one directory after the other.
var fileNames = []string{"workshop.yaml", "workshop.yml"}

// FindFile returns the absolute path of the workshop file: --file, else the
// first of [fileNames] here or in a parent directory.
func (env *Env) FindFile() (string, error) {
	if env.Settings.File != "" {
		path := env.Abs(env.Settings.File)
		info, err := os.Stat(path)
		if err != nil {
			return "", Fail(CodeInvalid, "workshop file %s: %w", env.Settings.File, PlainPathError(err))
		}
		if info.Mode().IsRegular() {
			return path, nil
		}
		if !info.IsDir() {
			return "", Fail(CodeInvalid, "workshop file %s: %w", env.Settings.File, boundedfile.KindError(info.Mode().Type()))
		}
		if file, ok := fileIn(path); ok {
			return file, nil
		}
		return "", noFile("no workshop.yaml in "+env.Settings.File, path)
	}
	return env.lookUpFile()
}

// ProjectFlags are the flags, each with a space after it, by which a command line that
// a person pastes works on the same project. What their directory and environment
// lead to needs none.
func (env *Env) ProjectFlags() (flags string) {
	needed := func(value, variable string) bool {
		return value != "" && (env.Detached || value != env.Getenv(variable))
	}
	if env.Detached || needed(env.Settings.File, "WORKSHOP_FILE") {
		file, err := env.FindFile()
		if found, _ := env.lookUpFile(); err == nil && (env.Detached || file != found) {
			flags = "-f " + shellquote.Path(file) + " "
		}
	}
	if p := env.Settings.Project; needed(p, "WORKSHOP_PROJECT_NAME") {
		flags += "-p " + p + " "
	}
	return flags
}

// lookUpFile is FindFile without --file.
func (env *Env) lookUpFile() (string, error) {
	for dir := env.Dir; ; dir = filepath.Dir(dir) {
		if path, ok := fileIn(dir); ok {
			if dir != env.Dir {
				return path, env.checkOwner(path)
			}
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", noFile("no workshop.yaml here or in a parent directory", env.Dir)
		}
	}
}

// checkOwner refuses a file of a parent directory that is another user's: in /tmp,
// say, anybody could write one for what is below. Root's, and those of the working
// directory's owner, are taken; who calls sudo is the caller.
func (env *Env) checkOwner(path string) error {
	owner, known := facts.OwnerOf(path)
	trusted := []int{0, os.Getuid()}
	if here, ok := facts.OwnerOf(env.Dir); ok {
		trusted = append(trusted, here)
	}
	if uid, ok := facts.SudoUID(env.Lookup); ok && os.Getuid() == 0 {
		trusted = append(trusted, uid)
	}
	if !known || slices.Contains(trusted, owner) {
		return nil
	}
	return Fail(CodeRefused, "%s belongs to another user (uid %d)", Printable(env.Shown(path)), owner).
		Hint("it is in a parent directory; if you mean it, name it with `-f %s`", Printable(shellquote.Path(env.Shown(path))))
}

// fileIn looks in one directory. What is no regular file is found too, and
// refused where it is read: in its place, another one of a parent directory isn't
// meant.
func fileIn(dir string) (string, bool) {
	for _, name := range fileNames {
		if path := filepath.Join(dir, name); Exists(path) {
			return path, true
		}
	}
	return "", false
}

// noFileError says where no workshop file was found.
type noFileError string

func (e noFileError) Error() string { return string(e) }

func noFile(message, dir string) *Failure {
	f := Fail(CodeInvalid, "%w", noFileError(message))
	if _, err := os.Stat(filepath.Join(dir, "compose.yaml")); err == nil {
		f.Hint("a compose.yaml is not read; a workshop has a file of its own")
	}
	return f.Hint("run `workshop init` to write one, or name it with `-f PATH`")
}

// PlainPathError leaves out the operation and the path, which the message
// around it says already.
func PlainPathError(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
