package mcpserver

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmdo/workshop/internal/session"
)

// report tells a client how one call goes: at most every [tick], at least every
// [Beat].
type report struct {
	ctx   context.Context
	ss    *mcp.ServerSession
	token any
	start time.Time
	last  chan session.Progress // the newest that wasn't told
	ended chan struct{}
	done  sync.WaitGroup
}

// tick is how often a call may say something.
const tick = 200 * time.Millisecond

func newReport(ctx context.Context, ss *mcp.ServerSession, token any) *report {
	r := &report{ctx: ctx, ss: ss, token: token, start: time.Now(), last: make(chan session.Progress, 1), ended: make(chan struct{})}
	r.done.Go(r.run)
	return r
}

// tell never waits for the client: what it has no time for is replaced by what
// comes later.
func (r *report) tell(p session.Progress) {
	for {
		select {
		case r.last <- p:
			return
		default:
		}
		select {
		case <-r.last:
		default:
		}
	}
}

func (r *report) run() {
	beat := time.NewTicker(Beat)
	defer beat.Stop()
	sent, said := 0.0, ""
	for {
		var p session.Progress
		select {
		case p = <-r.last:
			said = p.Message
			beat.Reset(Beat) // it is for calls that say nothing
		case <-beat.C:
			p.Message = cmp.Or(said, "running for "+time.Since(r.start).Round(time.Second).String())
		case <-r.ended:
			return
		}
		// Each must be more than the one before; where a call can't say how far it
		// is, they are counted.
		if p.Total <= 0 || p.Done <= sent {
			p.Done, p.Total = sent+1, 0
		}
		sent = p.Done
		_ = r.ss.NotifyProgress(r.ctx, &mcp.ProgressNotificationParams{ProgressToken: r.token, Message: p.Message, Progress: p.Done, Total: p.Total})
		select {
		case <-time.After(tick):
		case <-r.ended:
			return
		}
	}
}

// stop ends the report: nothing is told after the call's answer.
func (r *report) stop() {
	close(r.ended)
	r.done.Wait()
}
