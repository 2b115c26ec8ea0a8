package app

import (
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/verify"
	"github.com/llmdo/workshop/workshop"
)

// protectedIn are the directories in a worker's rw mounts that have to be read-only (B8),
// by what is found on this machine, not by what was compiled.
func protectedIn(ready *Project, w *workshop.Worker, started time.Time) (out []verify.Protected) {
	f := ready.Compiled.Facts
	if f == nil {
		return nil
	}
	for i := range w.Container.Mounts {
		m := &w.Container.Mounts[i]
		if !m.ReadWrite || m.IsCopy() {
			continue
		}
		var held []string
		for _, p := range f.Protected[m.Source.V] {
			inside := func(dir string) bool { return subpath.Within(p.Path, dir) }
			switch {
			case p.Kind == compose.GitDir && m.GitWritable, p.Kind == compose.GitHooks && !m.GitWritable, slices.ContainsFunc(held, inside):
				continue
			}
			held = append(held, p.Path)
			target := path.Join(m.Target.V, p.Path)
			if at := workshop.MountAt(w.Container.Mounts, target); at == nil || at.Target.V != m.Target.V {
				continue // another mount is over it
			}
			born := bornAt(filepath.Join(f.Sources[m.Source.V].Real, filepath.FromSlash(p.Path)))
			out = append(out, verify.Protected{Target: target, Later: born.After(started), Unsure: born.IsZero()})
		}
	}
	return out
}
