package toolbox

import (
	"context"
	"sync"
)

// keptOutput is what the outputs of all calls of a session may keep together,
// in bytes; a call that would keep more waits for the end of others.
const keptOutput = 64 << 20

// budget is a number of bytes that callers share. Who asks for much waits for
// it in turn, and lets nobody pass.
type budget struct {
	mu   sync.Mutex
	free int
	wait []*asked
}

type asked struct {
	bytes int
	given chan struct{}
}

func newBudget(bytes int) *budget { return &budget{free: bytes} }

// take waits until there are as many bytes, or the context ends.
func (b *budget) take(ctx context.Context, bytes int) error {
	a := &asked{bytes, make(chan struct{})}
	b.mu.Lock()
	b.wait = append(b.wait, a)
	b.serve()
	b.mu.Unlock()
	select {
	case <-a.given:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range b.wait {
		if w == a {
			b.wait = append(b.wait[:i], b.wait[i+1:]...)
			b.serve()
			return ctx.Err()
		}
	}
	b.free += bytes // given at the same moment
	b.serve()
	return ctx.Err()
}

func (b *budget) give(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += bytes
	b.serve()
}

func (b *budget) serve() {
	for len(b.wait) > 0 && b.wait[0].bytes <= b.free {
		b.free -= b.wait[0].bytes
		close(b.wait[0].given)
		b.wait = b.wait[1:]
	}
}
