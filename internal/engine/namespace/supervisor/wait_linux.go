package supervisor

import (
	"context"
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// lookAgain is how often a restart is waited for.
const lookAgain = 20 * time.Millisecond

// ready waits until a service said that it is ready, or can't be, or ended. One
// that was ready and is being restarted is waited for.
func (s *Supervisor) ready(ctx context.Context, name string) (*api.Ready, *api.Error) {
	gone := failure(api.CodeFailed, "nobody waits any more")
	for {
		s.mu.Lock()
		sv := s.services[name]
		s.mu.Unlock()
		if sv == nil {
			return nil, unknown(name)
		}
		// A start that is on its way comes first.
		select {
		case <-ctx.Done():
			return nil, gone
		case <-sv.turn:
			sv.done()
		}
		s.mu.Lock()
		r, state := sv.run, sv.state
		s.mu.Unlock()
		switch {
		case state.State == api.Created:
			return nil, failure(api.CodeNotRunning, "%s was not started", name)
		case r == nil: // it ran under an earlier supervisor
			return &api.Ready{Ended: true, ExitCode: state.ExitCode, OOM: state.OOMKilled}, nil
		case state.State == api.Running:
			select {
			case <-ctx.Done():
				return nil, gone
			case <-r.heard.done:
				if ready, _, _ := r.heard.verdict(); !ready || s.is(sv, r, api.Running) {
					return r.verdict(), nil
				}
			case <-r.ended:
			}
			// It ended; whether it is restarted, the next look tells.
		case state.State == api.Exited:
			return r.verdict(), nil
		default:
			if ready, _, _ := r.heard.verdict(); !ready {
				return r.verdict(), nil
			}
			select {
			case <-ctx.Done():
				return nil, gone
			case <-time.After(lookAgain):
			}
		}
	}
}

func (s *Supervisor) is(sv *service, r *run, state api.State) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sv.run == r && sv.state.State == state
}

// verdict is how a start went, when the line was heard or the run has ended.
func (r *run) verdict() *api.Ready {
	ready, failed, reason := r.heard.verdict()
	v := &api.Ready{Ready: ready, Reason: reason}
	select {
	case <-r.ended:
		v.Ready, v.Ended, v.ExitCode, v.OOM = false, true, r.code, r.oom
	default:
	}
	if failed && reason == "" {
		v.Reason = "it gives no reason"
	}
	if !v.Ready {
		v.Stderr = r.heard.lastWords()
	}
	return v
}
