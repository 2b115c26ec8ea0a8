package toolbox

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// beat is how often a client hears of a call that goes on.
const beat = time.Second

// progressKey is the key of a call's *progress in its context.
type progressKey struct{}

// progress is what a call adds to the notifications about it.
type progress struct{ line atomic.Pointer[func() string] }

// showLine sets what returns the last line of the call's output.
func showLine(ctx context.Context, line func() string) {
	if p, ok := ctx.Value(progressKey{}).(*progress); ok {
		p.line.Store(&line)
	}
}

// report notifies the client that the call goes on, until stop. Of a call that
// ends sooner there is no notification.
func report(ctx context.Context, c *wire.Incoming) (_ context.Context, stop func()) {
	began := time.Now()
	ended := make(chan struct{})
	p := &progress{}
	first := time.AfterFunc(beat, func() {
		t := time.NewTicker(beat)
		defer t.Stop()
		for {
			message := "running for " + time.Since(began).Round(time.Second).String()
			if line := p.line.Load(); line != nil {
				if text := (*line)(); text != "" {
					message += ": " + text
				}
			}
			if c.Notify("$/progress", map[string]any{"message": message}) != nil {
				return
			}
			select {
			case <-t.C:
			case <-ended:
				return
			}
		}
	})
	return context.WithValue(ctx, progressKey{}, p), func() {
		first.Stop()
		close(ended)
	}
}
