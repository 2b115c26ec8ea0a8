package app

import (
	"context"
	"slices"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/verify"
)

// fillOwn uses up the limits of workers with a kernel of their own, last: it ends them.
func (d *disruption) fillOwn(ctx context.Context) (lines []verify.Line) {
	fills := map[string]*verify.OwnFill{}
	memory, processes := verify.BeyondProbes()
	each := func(what func(worker string, f *verify.OwnFill)) {
		for _, w := range d.workers {
			if f := fills[w.Name]; f != nil {
				what(w.Name, f)
			}
		}
	}
	for _, w := range d.workers {
		if w.OwnKernel {
			fills[w.Name] = &verify.OwnFill{}
		}
	}
	if len(fills) == 0 {
		return nil
	}
	// The room was killed before.
	again := func() {
		if err := d.copy.start(ctx); err != nil {
			each(func(_ string, f *verify.OwnFill) { f.Unseen = plainText(err) })
		}
	}
	again()
	each(func(worker string, f *verify.OwnFill) {
		f.Seen, f.Unseen = d.probe(ctx, worker, verify.OwnFillProbes())
		f.Memory = d.beyond(ctx, worker, memory)
	})
	again()
	each(func(worker string, f *verify.OwnFill) { f.Processes = d.beyond(ctx, worker, processes) })
	each(func(worker string, f *verify.OwnFill) { lines = append(lines, verify.FilledOwn(worker, f)) })
	return lines
}

// beyond uses more than a limit of a worker.
func (d *disruption) beyond(ctx context.Context, worker string, probes []verify.Probe) (b verify.Beyond) {
	b.Before = d.look(ctx, compose.GuardService)
	b.Seen, _ = d.probe(ctx, worker, probes)
	for began := time.Now(); len(b.Seen) == 0 && !b.Ended && time.Since(began) < endTime && sleep(ctx, 100*time.Millisecond) == nil; {
		seen, err := d.copy.running.Look(ctx, false)
		b.Ended = err == nil && slices.ContainsFunc(seen.Containers, func(c engine.Container) bool { return c.Service == worker && c.State == "exited" })
	}
	b.After = d.look(ctx, compose.GuardService)
	return b
}

// endTime bounds the wait for the engine to see that a worker ended whose probe has.
const endTime = 10 * time.Second
