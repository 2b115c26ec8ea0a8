package docker

import (
	"context"
	"sync"

	"github.com/llmdo/workshop/internal/engine"
)

// Apply carries out the plan, as [engine.Runner] does.
func (e *Engine) Apply(ctx context.Context, p *engine.Plan, events func(engine.Event)) error {
	if err := e.approve(ctx, p); err != nil {
		return err
	}
	r := &run{e: e, p: p, ids: map[string]string{}, ready: map[string]*readiness{}, sent: map[string]*creation{}, asked: map[string]*creation{}, links: map[string]*linksSeen{}}
	r.runner = &engine.Runner{Plan: p, Events: events, Do: r.step, Explain: e.explain, Told: r.told}
	for _, c := range p.Observed.Containers {
		if p.Compiled != nil && c.Name == engine.ContainerName(p.Compiled.Project, c.Service) {
			r.ids[c.Service] = c.ID
		}
	}
	defer r.close()
	return r.runner.Run(ctx)
}

// run is one Apply.
type run struct {
	e      *Engine
	p      *engine.Plan
	runner *engine.Runner

	holding sync.Mutex // held while writers are paused

	mu    sync.Mutex
	ids   map[string]string     // service → container
	ready map[string]*readiness // container → its output so far
	sent  map[string]*creation  // container → its creation by this run
	asked map[string]*creation  // container → what was asked for, whoever created it
	known engine.Reports        // what the containers report of themselves
	links map[string]*linksSeen // image and platform → its links

	annotations sync.Map // image → what [run.annotated] found of it
}

func (r *run) close() {
	r.mu.Lock()
	for _, rd := range r.ready {
		rd.close()
	}
	r.mu.Unlock()
	r.e.settle()
}
