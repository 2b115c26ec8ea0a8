package session

import (
	"fmt"
	"strings"
)

// maxDescribed are the workers whose grants stand in the instructions; of more,
// the resources tell.
const maxDescribed = 5

// Instructions tell a model what it may do and reach: a short text.
func (h *Host) Instructions() string {
	h.mu.Lock()
	roots := h.roots
	h.mu.Unlock()
	l := &lines{}
	if h.all {
		var names []string
		for _, s := range roots {
			names = append(names, s.worker.Name)
		}
		l.addf("These tools run in the containers of the workshop %s. The name of a tool begins with its worker: WORKER%sTOOL. Workers: %s.", h.c.Workshop.Name.V, separator, strings.Join(names, ", "))
	} else {
		l.addf("These tools run in the container of the worker %s of the workshop %s, not on this machine.", roots[0].worker.Name, h.c.Workshop.Name.V)
	}
	l.add("Paths are those of the container. What isn't granted below is refused, and stays refused: say so instead of looking for a way around. Some calls need a person's yes; a call that was refused isn't to be repeated.")
	if len(roots) > maxDescribed {
		l.add("What each worker may reach is in the resources workshop://WORKER/grants.")
		return l.String()
	}
	for _, s := range roots {
		l.add("\n" + s.granted().text())
	}
	if !h.all {
		if text := strings.TrimSpace(roots[0].worker.Definition.Instructions); text != "" {
			l.add(fmt.Sprintf("\nWhat the worker %s is to do:\n%s", roots[0].worker.Name, text))
		}
	}
	return l.String()
}
