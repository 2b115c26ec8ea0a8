package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// Upper bounds of durations.
const (
	maxFor   = 366 * 24 * time.Hour
	maxLearn = 7 * 24 * time.Hour
)

// maxReplace bounds the lines of the old and the new policy together while one
// replaces the other: a line costs 1 KiB at most (the sum is in buffers.go).
const maxReplace = 80_000

// Do carries out a request of the host.
func (g *Guard) Do(ctx context.Context, r control.Request) (any, error) {
	switch r.Op {
	case control.OpState:
		g.tellPending(ctx)
		return g.state(), nil
	case control.OpExplain:
		return g.explain(ctx, r)
	case control.OpPolicy:
		return g.replace(r)
	case control.OpChange:
		return g.change(r)
	case control.OpLearn:
		return g.learn(r)
	case control.OpReopen:
		return g.reopen()
	case control.OpFailed:
		return g.failures(r)
	}
	return nil, fmt.Errorf("unknown operation %q", r.Op)
}

// replace replaces the base policy by that of another file.
func (g *Guard) replace(r control.Request) (any, error) {
	if r.Policy == nil {
		return nil, errors.New("the policy is missing")
	}
	p, digest, err := policy.Parse(r.Policy, g.config.Lookup)
	if err != nil {
		return nil, err
	}
	return g.commit(r.Reset, func(l *live) ([]func(), error) {
		if n := lines(l.base) + lines(p); n > maxReplace {
			return nil, fmt.Errorf("the old policy and the new one have %d lines together, and a running guard has memory for %d: `workshop down` and `workshop up`", n, maxReplace)
		}
		if what := fixedDifference(l.base, p); what != "" {
			return nil, fmt.Errorf("the new policy has other %s, which a running guard can't change: `workshop up` makes a new guard", what)
		}
		l.replace(p, digest, g.now())
		return []func(){func() { g.setRoots(p); g.notePolicy(digest.File) }}, nil
	})
}

// lines counts the lines of a policy.
func lines(p *firewall.Policy) (n int) {
	for _, r := range p.Rooms {
		n += len(r.Allow) + len(r.Deny)
	}
	return n
}

// fixedDifference names the first difference of two policies that a running guard
// can't apply; "" if there is none.
func fixedDifference(old, p *firewall.Policy) string {
	a, b := old.Fixed(), p.Fixed()
	if bytes.Equal(firewall.EncodePolicy(a), firewall.EncodePolicy(b)) {
		return ""
	}
	var out []string
	for _, part := range []struct {
		name string
		take func(to, from *firewall.Policy)
	}{
		{"resolvers", func(to, from *firewall.Policy) { to.Resolvers = from.Resolvers }},
		{"proxy", func(to, from *firewall.Policy) { to.Proxy, to.ProxyCredential = from.Proxy, from.ProxyCredential }},
		{"published ports", func(to, from *firewall.Policy) { to.Publish = from.Publish }},
		{"rooms, modes or endpoints", func(to, from *firewall.Policy) { to.Rooms = from.Rooms }},
	} {
		x := *a
		part.take(&x, b)
		if !bytes.Equal(firewall.EncodePolicy(a), firewall.EncodePolicy(&x)) {
			out = append(out, part.name)
		}
	}
	if len(out) == 0 {
		return "workshop name"
	}
	return strings.Join(out, ", ")
}

// changeable refuses a policy too large to be changed live: each change holds the
// old and the new lines of the rooms in memory.
func (l *live) changeable() error {
	if n := lines(l.base); 2*n > maxReplace {
		return fmt.Errorf("the policy has %d lines, and a running guard has memory to change one of %d: write it into workshop.yaml, `workshop down` and `workshop up`", n, maxReplace/2)
	}
	return nil
}

// change adds live changes: all, or none of them.
func (g *Guard) change(r control.Request) (any, error) {
	if len(r.Changes) == 0 && !r.Reset {
		return nil, errors.New("the changes are missing")
	}
	if len(r.Changes) > maxLive {
		return nil, fmt.Errorf("more than %d changes", maxLive)
	}
	until, err := g.until(r.For, maxFor)
	if err != nil {
		return nil, err
	}
	return g.commit(r.Reset, func(l *live) (notes []func(), err error) {
		if err := l.changeable(); len(r.Changes) > 0 && err != nil {
			return nil, err
		}
		var problems []error
		for _, c := range r.Changes {
			if !c.Until.IsZero() {
				problems = append(problems, errors.New("a change takes `for`, not `until`"))
				continue
			}
			c.Until, c.Rule.Line = until, liveLine(until)
			ended, err := l.add(c)
			switch {
			case err != nil:
				problems = append(problems, err)
			case ended:
				c.Deny = true
				notes = append(notes, func() { g.noteLive(c, "ended") })
			default:
				notes = append(notes, func() { g.noteLive(c, "began") })
			}
		}
		return notes, errors.Join(problems...)
	})
}

// learn begins or ends learning in rooms.
func (g *Guard) learn(r control.Request) (any, error) {
	until, err := g.until(r.For, maxLearn)
	if err != nil {
		return nil, err
	}
	return g.commit(false, func(l *live) (notes []func(), err error) {
		if err := l.changeable(); !until.IsZero() && err != nil {
			return nil, err
		}
		was := l.clone().learning
		rooms, err := l.learn(r.Rooms, until)
		for _, room := range rooms {
			switch _, learned := was[room]; {
			case !until.IsZero():
				notes = append(notes, func() { g.noteLearning(room, "began, until "+until.UTC().Format(time.RFC3339)) })
			case learned:
				notes = append(notes, func() { g.noteLearning(room, "ended") })
			}
		}
		return notes, err
	})
}

// commit applies f to a copy of the live state (emptied first by a reset) and
// enforces it unless f fails; f returns the events to write afterwards. Denies are
// recorded before the request is answered.
func (g *Guard) commit(reset bool, f func(*live) ([]func(), error)) (any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.live.clone()
	var notes []func()
	if reset {
		notes = g.noteReset(l)
		l.reset()
	}
	more, err := f(l)
	if err == nil {
		err = l.check()
	}
	if err == nil {
		err = g.fits(l, reset)
	}
	if err != nil {
		return nil, err
	}
	g.live = l
	g.wake()
	if reset {
		err = g.forget()
	}
	recordErr := g.record(l)
	applied, enforceErr := g.enforce()
	for _, note := range append(notes, more...) {
		note()
	}
	if err := errors.Join(err, recordErr, enforceErr); err != nil {
		return nil, fmt.Errorf("the change holds, but %w", err)
	}
	return applied, nil
}

// wake makes ends check the live state again.
func (g *Guard) wake() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// until returns the time after d; zero for no end. most bounds d.
func (g *Guard) until(d control.Duration, most time.Duration) (time.Time, error) {
	switch last := time.Duration(d); {
	case last < 0:
		return time.Time{}, errors.New("`for` must not be negative")
	case last > most:
		return time.Time{}, fmt.Errorf("`for` must be at most %s", most)
	case last == 0:
		return time.Time{}, nil
	default:
		return g.now().Add(last), nil
	}
}

// liveLine is the line that explain and events show for a live rule.
func liveLine(until time.Time) string {
	if until.IsZero() {
		return firewall.LiveLine
	}
	return firewall.LiveLine + ", until " + until.UTC().Format(time.RFC3339)
}
