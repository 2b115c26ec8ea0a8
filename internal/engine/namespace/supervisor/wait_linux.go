package supervisor

import (
	"context"
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// lookAgain is how often a pending restart is polled.
const lookAgain = 20 * time.Millisecond

// ready waits until a service is ready, failed or ended. It also waits for one that
// is being restarted.
func (s *Supervisor) ready(ctx context.Context, name string) (*api.Ready, *api.Error) {
	gone := failure(api.CodeFailed, "the client has disconnected")
	for {
		s.mu.Lock()
		sv := s.services[name]
		s.mu.Unlock()
		if sv == nil {
			return nil, unknown(name)
		}
		// Wait for a start in progress.
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
			// It has ended; the next poll sees whether it is restarted.
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

// wait waits until a service has ended and isn't restarted, or is removed.
func (s *Supervisor) wait(ctx context.Context, name string) (*api.Ready, *api.Error) {
	var last *run
	for {
		s.mu.Lock()
		sv := s.services[name]
		if sv == nil {
			s.mu.Unlock()
			if last != nil { // removed once it had ended
				return &api.Ready{Ended: true, ExitCode: last.code, OOM: last.oom}, nil
			}
			return nil, unknown(name)
		}
		r, state := sv.run, sv.state
		s.mu.Unlock()
		switch {
		case state.State == api.Created:
			return nil, failure(api.CodeNotRunning, "%s was not started", name)
		case state.State == api.Exited || r == nil:
			return &api.Ready{Ended: true, ExitCode: state.ExitCode, OOM: state.OOMKilled}, nil
		case state.State == api.Running:
			select {
			case <-ctx.Done():
				return nil, failure(api.CodeFailed, "the client has disconnected")
			case <-r.ended:
				last = r
			}
		default: // a pending restart
			select {
			case <-ctx.Done():
				return nil, failure(api.CodeFailed, "the client has disconnected")
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

// verdict returns the result of a start once the line was found or the run ended.
func (r *run) verdict() *api.Ready {
	ready, failed, reason := r.heard.verdict()
	v := &api.Ready{Ready: ready, Reason: reason, Started: r.started}
	v.Notes, v.Made = r.heard.noted()
	select {
	case <-r.ended:
		v.Ready, v.Ended, v.ExitCode, v.OOM = false, true, r.code, r.oom
	default:
	}
	if failed && reason == "" {
		v.Reason = "without a reason"
	}
	if !v.Ready {
		v.Stderr = r.heard.lastWords()
	}
	return v
}
