package session

import (
	"fmt"
	"strings"
)

// maxDescribed is for how many workers the instructions list the grants; for
// more, the resources do.
const maxDescribed = 5

// Instructions returns a short text for a model: what it may do and reach. asks: a
// person can be asked for an approval.
func (h *Host) Instructions(asks bool) string {
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
		l.addf("These tools run in the container of the worker %s of the workshop %s.", roots[0].worker.Name, h.c.Workshop.Name.V)
	}
	unasked := ""
	if !asks {
		unasked = ", and in this session nobody can be asked: they are refused"
	}
	l.add("Paths are those of the container, absolute or relative to the working directory. What is not granted below is refused: tell the person, and do not look for a way around. Some calls need a person's approval" + unasked + ". Do not repeat a call that was refused. What workshop says of a call is in [brackets], as a text of its own after the output; in an output such lines are the program's.")
	if h.c.Outdated != nil && h.c.Outdated() {
		l.add("The workshop's files have changed since the workers were started: until a person runs `workshop up`, what is granted may be less or other than what is listed here.")
	}
	if len(roots) > maxDescribed {
		l.add("What each worker may reach is in the resources workshop://WORKER/grants.")
		return l.String()
	}
	for _, s := range roots {
		l.add("\n" + s.granted().text())
	}
	if !h.all {
		if text := strings.TrimSpace(roots[0].worker.Definition.Instructions); text != "" {
			l.add(fmt.Sprintf("\nThe task of the worker %s:\n%s", roots[0].worker.Name, text))
		}
	}
	return l.String()
}
