package toolbox

import (
	"time"

	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// beat is how often a client hears of a call that goes on.
const beat = time.Second

// report tells the client of a call that it goes on, until stop. Nothing is told
// of one that ends sooner.
func report(c *wire.Incoming) (stop func()) {
	began := time.Now()
	ended := make(chan struct{})
	first := time.AfterFunc(beat, func() {
		t := time.NewTicker(beat)
		defer t.Stop()
		for {
			message := "running for " + time.Since(began).Round(time.Second).String()
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
	return func() {
		first.Stop()
		close(ended)
	}
}
