package dns

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/guard/share"
)

// maxCached bounds the cache; an entry is about 300 bytes, more with many
// addresses.
const maxCached = 10_000

// maxFailed bounds the failures cached for failureTTL.
const maxFailed = 1000

// errAsking means that a room has too many pending questions.
var errAsking = errors.New("too many questions at the same time")

type key struct {
	name firewall.Name
	kind Type
}

// cache keeps answers, briefly also failures, and merges concurrent equal
// questions.
type cache struct {
	mu     sync.Mutex
	done   map[key]Answer
	failed map[key]failure
	flight map[key]*flight
}

// failure spares a resolver that doesn't answer further questions.
type failure struct {
	err   error
	until time.Time
}

type flight struct {
	ready  chan struct{}
	answer Answer
	err    error
}

func (c *cache) init() {
	c.done, c.failed, c.flight = map[key]Answer{}, map[key]failure{}, map[key]*flight{}
}

func (c *cache) peek(k key) (Answer, bool) {
	c.mu.Lock()
	a, ok := c.done[k]
	c.mu.Unlock()
	return a, ok && time.Now().Before(a.Expires)
}

// get returns the cached answer, or calls ask. The question continues when the
// caller's ctx ends, as others may wait for it, and holds a place of asking until
// it is done; without a free place get fails.
func (c *cache) get(ctx context.Context, asking *share.Room, k key, ask func(context.Context, key) (Answer, error)) (Answer, error) {
	c.mu.Lock()
	if a, ok := c.done[k]; ok && time.Now().Before(a.Expires) {
		c.mu.Unlock()
		return a, nil
	}
	if x, ok := c.failed[k]; ok && time.Now().Before(x.until) {
		c.mu.Unlock()
		return Answer{}, x.err
	}
	f := c.flight[k]
	if f == nil {
		place, ok := asking.Try()
		if !ok {
			c.mu.Unlock()
			return Answer{}, errAsking
		}
		f = &flight{ready: make(chan struct{})}
		c.flight[k] = f
		go c.fly(k, f, place, ask) // recovers
	}
	c.mu.Unlock()
	select {
	case <-f.ready:
		return f.answer, f.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

var errPanicked = errors.New("the look-up panicked")

func (c *cache) fly(k key, f *flight, place share.Place, ask func(context.Context, key) (Answer, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), flightTimeout)
	defer cancel()
	defer place.Free()
	panics.Serve(func() { f.answer, f.err = ask(ctx, k) }, func() { f.err = errPanicked })
	c.mu.Lock()
	delete(c.flight, k)
	if f.err == nil {
		c.room()
		c.done[k] = f.answer
		delete(c.failed, k)
	} else {
		if len(c.failed) >= maxFailed {
			clear(c.failed)
		}
		c.failed[k] = failure{f.err, time.Now().Add(failureTTL)}
	}
	c.mu.Unlock()
	close(f.ready)
}

// room makes room for one entry: it evicts expired entries first, then any (a
// map's order is random enough).
func (c *cache) room() {
	if len(c.done) < maxCached {
		return
	}
	now, looked := time.Now(), 0
	for k, a := range c.done {
		if now.After(a.Expires) || looked >= 64 {
			delete(c.done, k)
		}
		if looked++; looked > 128 {
			break
		}
	}
}
