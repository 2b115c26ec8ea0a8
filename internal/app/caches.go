package app

import (
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/engine"
)

// sayFreshCaches says which caches start empty although their worker had one: nobody
// should look for what made the next build slow.
func (env *Env) sayFreshCaches(plan *engine.Plan) {
	fresh := map[string][]string{}
	var workers []string
	for _, s := range plan.Steps {
		if c, ok := plan.Compiled.Caches[s.Key]; ok && s.Op == engine.OpCreateVolume && s.Cause == engine.GrantsChanged {
			workers = appendNew(workers, c.Worker)
			fresh[c.Worker] = append(fresh[c.Worker], c.Name)
		}
	}
	for _, w := range workers {
		what := "its cache " + fresh[w][0] + " starts"
		if len(fresh[w]) > 1 {
			what = "its caches " + strings.Join(fresh[w], ", ") + " start"
		}
		env.say("%s: %s empty, as what it is granted changed", w, what)
	}
}

// detailCaches says that `down` keeps caches, to who asks for more: -v is what Compose
// calls --volumes.
func (env *Env) detailCaches(seen engine.Observed, dir string) {
	var names []string
	for _, o := range seen.Caches {
		if c, ok := engine.CacheOf(o); ok && c.Directory == dir {
			names = append(names, Printable(c.Cache+" of "+c.Worker))
		}
	}
	if len(names) > 0 {
		env.detail("caches stay: %s; `workshop down --volumes` removes them", strings.Join(names, ", "))
	}
}

// readyNotes collects what workers said before they were ready.
type readyNotes struct {
	mu    sync.Mutex
	notes []string
}

// event reports whether an event is such a note.
func (n *readyNotes) event(e engine.Event) bool {
	if e.Step.Op != engine.OpWaitReady || e.Status != engine.StepProgress {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, e.Step.Service+": "+Printable(e.Detail))
	return true
}
