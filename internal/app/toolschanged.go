package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
)

// warnChanged compares what runs with the files. The session goes on either
// way: what is offered is checked by both, and each can only narrow the other.
func (h *Tools) warnChanged(ctx context.Context) {
	env := h.env
	var plan *engine.Plan
	ready, err := (*h.current.Load())()
	if err == nil {
		plan, err = h.engine.differs(ctx, ready, h.names)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		env.warn("%s can't be compared with what runs: %v", env.Shown(h.c.File), err)
	case !plan.Empty():
		env.warn("%s: the running workshop is out of date", h.changed())
		env.hint("`workshop up` applies it, `workshop up --dry-run` shows it")
	}
}

// refuseChanged refuses workers that aren't what the lock says (B46).
func (h *Tools) refuseChanged(ctx context.Context) error {
	ready, err := (*h.current.Load())()
	if err != nil {
		return err
	}
	return h.engine.refuseOlder(ctx, ready, h.names)
}

// refuseOlder refuses workers of a project that run, or ran, and aren't what its lock says
// (B46).
func (r *Running) refuseOlder(ctx context.Context, ready *Project, names []string) error {
	plan, err := r.differs(ctx, ready, names)
	if err != nil {
		return err
	}
	if !plan.OnlyStarts() {
		return Fail(CodeRefused, "the running workshop is older than %s (B46)", r.env.Shown(ready.lockFile())).Hint("run `workshop up --frozen`")
	}
	return nil
}

// changed says what differs from what runs, as far as that is known.
func (h *Tools) changed() string {
	file := h.env.Shown(h.c.File)
	paths, noted := h.env.changedFiles(h.c.Source)
	if len(paths) > 0 {
		for i, p := range paths {
			paths[i] = h.env.shownClipped(p)
		}
		return WorkersText(paths) + " changed since `up`"
	}
	if ready, err := (*h.current.Load())(); noted && err == nil {
		var workers []string
		changes := h.env.GrantChanges(ready)
		for _, name := range h.wanted() {
			if c := changes[name]; c.Text != "" {
				workers = append(workers, fmt.Sprintf("%s is to change (%s)", name, c.Text))
			}
		}
		if len(workers) > 0 {
			return strings.Join(workers, ", ")
		}
	}
	text := "a variable that " + file + " uses, a build context, this program, or the directories that are read-only in a mount (B8) changed since `up`"
	if !noted {
		text = file + ", " + text
	}
	return text
}

// differs is what `up` would do with workers of a project, all where there are no names.
func (r *Running) differs(ctx context.Context, ready *Project, names []string) (plan *engine.Plan, err error) {
	d := engine.Desired{Compiled: ready.Compiled, Only: names, Pulled: true}
	if d.Builds, err = r.env.buildHashes(ctx, ready); err != nil {
		return nil, err
	}
	seen, err := r.Observe(ctx, ready.Name, engine.DesiredImages(d)...)
	if err != nil {
		return nil, err
	}
	return engine.PlanUp(d, seen)
}

// collect adds the facts of this machine. What prevents a start does not matter here.
func (r *Running) collect(ctx context.Context, c *Project) (*Project, error) {
	info, err := r.Info(ctx)
	if err != nil {
		return nil, err
	}
	o := r.env.factsOptions(ctx, c.startedLike(ctx, r), info)
	if o.InitImage, o.InitVolume, err = r.InitNames(ctx); err != nil {
		return nil, err
	}
	ready, _ := withFacts(ctx, c, o)
	return ready, nil
}
