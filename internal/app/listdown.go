package app

import (
	"context"
	"os"
	"slices"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
)

// down are the projects that have no container any more and have kept something, that
// aren't listed.
func (env *Env) down(ctx context.Context, listed []Workshop, records []*facts.Record, quiet silent, o ListOptions) []Workshop {
	kept := map[ProjectRef][]string{}
	note := func(project, dir, what string) {
		t := ProjectRef{Name: project, Dir: dir}
		if !slices.Contains(kept[t], what) && !slices.ContainsFunc(listed, func(w Workshop) bool { return w.Project == project && (w.Directory == dir || w.Directory == "") }) {
			kept[t] = append(kept[t], what)
		}
	}
	perhaps := map[ProjectRef]*facts.Place{} // up, on an engine that didn't answer
	for _, r := range records {
		what := "record"
		if !r.Down && quiet.has(r) {
			at := &facts.Place{}
			if r.Place != nil {
				at = r.Place
			}
			perhaps[ProjectRef{Name: r.Project, Dir: r.Dir}] = at
		}
		if r.Down {
			what = "changes"
		}
		note(r.Project, r.Dir, what)
	}
	leases, err := env.leases().Leases()
	if err != nil {
		env.warn("%v", err)
	}
	for _, l := range leases {
		note(l.Project, l.Dir, "ports")
	}
	for _, c := range env.caches(ctx, records, o) {
		note(c.Project, c.Directory, "caches")
	}
	var out []Workshop
	for t, what := range kept {
		slices.Sort(what)
		w := Workshop{Project: t.Name, Directory: t.Dir, State: StateDown, Workers: []WorkshopWorker{}, Kept: what, Gone: !Exists(t.Dir)}
		if p := perhaps[t]; p != nil {
			w.State, w.Engine, w.Endpoint = StateUnknown, p.Engine, p.Endpoint
		}
		if uid, known := ownerOf(t.Dir); known && uid != os.Getuid() {
			w.Owner = &uid
		}
		out = append(out, w)
	}
	return out
}

// cacheOn is a cache with the engine that has it.
type cacheOn struct {
	engine.Cache
	engine string
}

// caches are those of this user on all engines.
func (env *Env) caches(ctx context.Context, records []*facts.Record, o ListOptions) (all []cacheOn) {
	for _, p := range env.enginesHere(records) {
		if o.Engine != "" && p.Engine != o.Engine {
			continue
		}
		e, err := env.engineAt(ctx, p)
		if err != nil {
			continue // it was named before
		}
		within, cancel := context.WithTimeout(ctx, listTime)
		list, _ := e.Caches(within, false)
		cancel()
		e.Close()
		for _, c := range list {
			if env.owns(p.Engine, c.Directory, recordOf(records, c.Project, c.Directory)) {
				all = append(all, cacheOn{c, p.Engine})
			}
		}
	}
	return all
}
