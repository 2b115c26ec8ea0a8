package facts

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/compose"
)

// dependencies are directories of installed packages: nobody opens them as a
// project, and packages bring hundreds of .github directories along.
var dependencies = map[string]bool{"node_modules": true, "site-packages": true, "bower_components": true}

// protectedSearch gathers protected directories, outermost ones only.
type protectedSearch struct{ dirs []string }

// see looks at one directory; it must be called before those inside it.
func (s *protectedSearch) see(rel string) {
	if !compose.IsProtected(path.Base(rel)) {
		return
	}
	parts := strings.Split(rel, "/")
	for _, part := range parts[:len(parts)-1] {
		if compose.IsProtected(part) || dependencies[part] {
			return
		}
	}
	s.dirs = append(s.dirs, rel)
}

// repositories picks the .git directories among dirs, and the source itself
// (".") where it is one.
func repositories(root string, dirs []string) []string {
	var out []string
	if strings.EqualFold(filepath.Base(root), ".git") {
		out = append(out, ".")
	}
	for _, d := range dirs {
		if strings.EqualFold(path.Base(d), ".git") {
			out = append(out, d)
		}
	}
	return out
}

// hooksBelow lists the hooks directories of the repositories found and of
// their submodules, which git keeps in .git/modules (gitrepository-layout(5)).
func hooksBelow(root string, repositories []string) ([]string, error) {
	var out []string
	add := func(git string) {
		hooks := path.Join(git, "hooks")
		if info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(hooks))); err == nil && info.IsDir() {
			out = append(out, hooks)
		}
	}
	for _, d := range repositories {
		add(d)
		modules := filepath.Join(root, filepath.FromSlash(d), "modules")
		err := filepath.WalkDir(modules, func(p string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // no submodules
				return nil
			case err != nil:
				return err // what can't be read can't be protected
			case !e.IsDir():
				return nil
			}
			if e.Name() == "objects" || e.Name() == "refs" || e.Name() == "hooks" {
				return filepath.SkipDir
			}
			if _, err := os.Lstat(filepath.Join(p, "HEAD")); err == nil {
				if rel, err := filepath.Rel(root, p); err == nil {
					add(filepath.ToSlash(rel))
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
