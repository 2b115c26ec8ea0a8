package namespace

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// unusedTime is how long a program stays in the cache that no `up` has used.
const unusedTime = 30 * 24 * time.Hour

// removeUnused removes programs of other versions from the cache, when this one
// was written, and what is left of writers that were killed. Its caller has the
// cache's lock alone: whoever takes a program of it is asked to note the time
// first, and so finds it whole or writes it again. What is in the way, the next
// version tries again.
//
// Containers of a project name the directory, and need it when they are started
// again, however long ago they were made.
func (e *Engine) removeUnused(cache string) {
	used, err := e.usedPrograms()
	if err != nil {
		return // what runs can't be told
	}
	list, _ := os.ReadDir(cache)
	for _, entry := range list {
		// A program's directory has the time of its last use, its stamp goes with it.
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

// usedPrograms are the names of directories that containers of any project have
// mounted, programs' among them.
func (e *Engine) usedPrograms() (map[string]bool, error) {
	used := map[string]bool{}
	projects, err := os.ReadDir(e.opts.StateDir)
	if os.IsNotExist(err) {
		err = nil
	}
	for _, p := range projects {
		f, err := client.State(e.dir(p.Name()))
		if err != nil {
			return nil, err
		}
		for i := range f.Containers {
			for _, m := range f.Containers[i].Container.Mounts {
				used[filepath.Base(m.Source)] = true
				used[filepath.Base(filepath.Dir(m.Source))] = true
			}
		}
	}
	return used, err
}
