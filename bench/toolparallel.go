//go:build linux

package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/llmdo/workshop/internal/session"
)

// callers call at the same time.
const callers = 8

// parallel measures eight callers: in one session, in a session each, as execs
// of the engine, and as processes on the host.
func (r *room) parallel() error {
	var hosts []*session.Host
	for range 1 + callers {
		h, err := r.host(r.here)
		if err != nil {
			return err
		}
		defer h.Close()
		hosts = append(hosts, h)
	}
	one := func(int) func() error { return r.hostCall(hosts[0], "shell", trueArgs) }
	each := func(i int) func() error { return r.hostCall(hosts[1+i], "shell", trueArgs) }
	api := func(int) func() error { return r.apiExec("/bin/true") }
	floor := func(int) func() error { return hostTrue }
	crowds := []*crowd{{caller: one, calls: 50}, {caller: each, calls: 50}, {caller: floor, calls: 50}, {caller: api, calls: 2}}
	for round := range 6 {
		for _, c := range crowds {
			if err := c.run(round > 0); err != nil {
				return err
			}
		}
	}
	for _, c := range crowds {
		slices.Sort(c.each)
		slices.Sort(c.per)
	}
	for i, what := range []string{"8 callers in one session", "8 callers, a session each"} {
		c := crowds[i]
		note := fmt.Sprintf("%.0f calls a second, p50 %.2f ms, p99 %.2f ms; on the host %.0f, %.2f, %.2f; by API %.0f, %.0f, %.0f",
			1000/c.per.median(), c.each.p(50), c.each.p(99), 1000/crowds[2].per.median(), crowds[2].each.p(50), crowds[2].each.p(99),
			1000/crowds[3].per.median(), crowds[3].each.p(50), crowds[3].each.p(99))
		r.b.add(row{what: what + ", time per call", against: "8 fork + exec on the host", ours: c.per.median(), other: crowds[2].per.median(), unit: "ms", note: note})
		r.b.add(row{what: what + ", time per call", against: "8 exec by API", ours: c.per.median(), other: crowds[3].per.median(), unit: "ms"})
	}
	return nil
}

// crowd are callers of one kind.
type crowd struct {
	caller func(i int) func() error
	calls  int // of each caller in a round

	mu   sync.Mutex
	each times // of a call, as its caller sees it
	per  times // of a round, by its number of calls
}

func (c *crowd) run(counts bool) error {
	var g errgroup.Group
	begun := time.Now()
	for i := range callers {
		do := c.caller(i)
		g.Go(func() error {
			var mine times
			for range c.calls {
				start := time.Now()
				if err := do(); err != nil {
					return err
				}
				mine = append(mine, float64(time.Since(start).Nanoseconds())/1e6)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if counts {
				c.each = append(c.each, mine...)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if counts {
		c.per = append(c.per, float64(time.Since(begun).Nanoseconds())/1e6/float64(callers*c.calls))
	}
	return nil
}
