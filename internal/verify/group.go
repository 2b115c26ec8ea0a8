package verify

import (
	"slices"
)

// Lines are lines of one promise that say the same of several workers.
type Lines struct {
	Line
	Workers []string
}

// Group joins lines of one promise and verdict: those that are held, and those that
// weren't tested for the same reason. A broken one stays by itself.
func Group(lines []Line) (out []Lines) {
	for _, l := range lines {
		i := -1
		if l.Verdict != Broken {
			i = slices.IndexFunc(out, func(g Lines) bool {
				return g.Promise == l.Promise && g.Verdict == l.Verdict && g.Why == l.Why && g.Copy == l.Copy
			})
		}
		if i < 0 {
			out = append(out, Lines{Line: l})
			i = len(out) - 1
		}
		if l.Worker != "" && !slices.Contains(out[i].Workers, l.Worker) {
			out[i].Workers = append(out[i].Workers, l.Worker)
		}
	}
	return out
}
