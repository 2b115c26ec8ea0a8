package app

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/workshop"
)

// fullPlace is a memory file system of a worker on which a program found no space left.
type fullPlace struct {
	path, key string
	size      workshop.Size
}

// fullPlace is where a program found no space left: by a path that it named, else the
// first one that the worker's toolbox found full. Not ok where it was elsewhere, or isn't
// known.
func (s *Signs) fullPlace(w *workshop.Worker, dir string) (place fullPlace, ok bool) {
	defer s.look()()
	if !s.noSpace {
		return place, false
	}
	paths := s.filled
	if len(s.full) > 0 {
		paths = s.full
	}
	for _, p := range paths {
		p = pathIn(w, dir, p)
		if workshop.MountAt(w.Container.Mounts, p) != nil {
			continue
		}
		place.path, place.key = workshop.TmpfsAt(p)
		switch place.key {
		case "tmp":
			place.size = w.Container.Tmp.V
		case "scratch":
			place.size = w.Container.Scratch.V
		case "home":
			place.size = w.Container.Home.V
		default:
			continue
		}
		return place, true
	}
	return place, false
}

// told is what a model is told of it.
func (x fullPlace) told() string { return fmt.Sprintf("%s was full (%s).", x.path, x.size) }

// hint is what a person is told of it.
func (x fullPlace) hint(worker, file string) string {
	return fmt.Sprintf("%s is full (%s): raise `%s` in %s, then run `workshop up`; or empty it with `workshop restart %s`", x.path, x.size, x.key, file, worker)
}

// limitText is what a worker's memory limit has to do with a program that was killed.
func limitText(w *workshop.Worker) string {
	return fmt.Sprintf("the memory limit of %s (resources.memory of %s)", w.Container.Resources.Memory.V, w.Name)
}

// heldText says what files in a worker's memory hold of its limit; empty: nothing that
// is worth saying.
func (s *Signs) heldText(w *workshop.Worker) string {
	defer s.look()()
	if len(s.held) == 0 {
		return ""
	}
	return strings.Join(s.held, ", ") + ": remove some, or all with `workshop restart " + w.Name + "`"
}
