package lifecycle

import (
	"testing"

	"github.com/llmdo/workshop/workshop"
)

// A worker's line of `up` has what changed, and what it has as a whole where that is
// asked for: its runtime, too.
func TestWorkerLine(t *testing.T) {
	w := &workshop.Worker{Name: "w"}
	w.Container.Runtime.V = "runsc"
	for _, c := range []struct {
		name             string
		whole, unlimited bool
		want             string
	}{
		{"what changed", false, false, "w: updated"},
		{"all", true, false, "w: updated; no files; no network; runtime runsc; 0 memory, 0 cpu, 0 pids"},
		{"what changed, without limits", false, true, "w: updated; without limits (B5)"},
		{"all, without limits", true, true, "w: updated; no files; no network; runtime runsc; without limits (B5)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := workerLine(w, nil, "updated", c.whole, c.unlimited); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
