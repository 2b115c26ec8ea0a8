package namespace

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// unusedTime is how long a program stays in the cache after its last `up`.
const unusedTime = 30 * 24 * time.Hour

// removeUnused removes programs of other versions from the cache, and leftovers of
// killed writers, after this version's program was written. The caller holds the
// cache's lock exclusively: a user of a program first records the time of use, so it
// finds the program complete or writes it again. Errors are left to the next version.
//
// Containers of a project refer to the directory, and need it for a restart however
// old they are.
func (e *Engine) removeUnused(cache string) {
	used, err := e.usedPrograms()
	if err != nil {
		return // the running containers are unknown
	}
	list, _ := os.ReadDir(cache)
	for _, entry := range list {
		// A program's directory has the time of its last use; its stamp is removed
		// with it.
		digest := strings.TrimSuffix(entry.Name(), ".json")
		info, err := os.Lstat(filepath.Join(cache, digest))
		if err != nil {
			info, err = entry.Info()
		}
		if err == nil && !used[digest] && time.Since(info.ModTime()) > unusedTime {
			_ = rmtree.Remove(filepath.Join(cache, entry.Name()))
		}
	}
}

// usedPrograms returns the names of all directories that containers of any project
// have mounted or as their root, including those of programs and images.
func (e *Engine) usedPrograms() (map[string]bool, error) {
	used := map[string]bool{}
	projects, err := os.ReadDir(e.opts.StateDir)
	if os.IsNotExist(err) {
		err = nil
	}
	for _, p := range projects {
		f, err := client.State(e.dir(p.Name()))
		if err != nil && !isForm(err) {
			return nil, err
		}
		for i := range f.Containers {
			dirs := []string{f.Containers[i].Container.Root.Dir}
			for _, m := range f.Containers[i].Container.Mounts {
				dirs = append(dirs, m.Source)
			}
			for _, dir := range dirs {
				used[filepath.Base(dir)] = true
				used[filepath.Base(filepath.Dir(dir))] = true
			}
		}
	}
	return used, err
}
