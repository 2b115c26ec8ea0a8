package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
)

// reloadTime is what a guard gets to take a policy, and to come back where it
// just ends: it answers in milliseconds.
const (
	reloadTime  = 15 * time.Second
	reloadAgain = 100 * time.Millisecond
)

// reload gives the running guard the policy, and then its volume. In this order
// the file stays the old one when the guard refuses it. A guard that ended in
// between had read the old file: that shows, and it is asked again; by then the
// file is the new one.
func (r *run) reload(ctx context.Context, s engine.Step) error {
	limit := reloadTime
	if r.p.WaitTimeout > 0 {
		limit = min(limit, r.p.WaitTimeout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &engine.SilentGuardError{Container: s.Target, After: limit})
	defer cancel()
	var (
		cut, others int
		problem     error
		refused     *control.RefusedError
	)
	for {
		has, err := r.reloadOnce(ctx, s, &cut)
		switch {
		case ctx.Err() != nil:
			return cmp.Or(problem, context.Cause(ctx))
		case err == nil && has == firewall.Digest(r.p.Compiled.Policy):
			r.emit(engine.Event{Step: s, Status: engine.StepProgress, Detail: cutText(cut)})
			return nil
		case err != nil:
			problem = fmt.Errorf("the guard's new policy: %w; run `workshop up` again; if that doesn't help either, `workshop restart` and then `workshop up`", err)
			if errors.As(err, &refused) {
				return problem
			}
		case others > 0:
			return errors.New("the guard was given the new policy and has another one: does another program change it? Run `workshop up` again")
		default:
			others++
		}
		select {
		case <-ctx.Done():
		case <-time.After(reloadAgain):
		}
	}
}

// reloadOnce returns the digest of the policy that the guard has in the end. It
// is asked over the same connection as before, which a restart would have ended.
//
// The volume is read-only in the guard, so it is filled through a helper. The
// archive API removes a file before it writes the new one: a guard that starts
// in between finds none, or a part, which is no policy. It ends, and the engine
// starts it again; its rooms are closed meanwhile.
func (r *run) reloadOnce(ctx context.Context, s engine.Step, cut *int) (string, error) {
	c := r.p.Compiled
	conn, err := r.e.dialControl(ctx, s.ObjectID)
	if err != nil {
		return "", err
	}
	client := control.NewClient(conn)
	defer client.Close()
	var applied control.Applied
	problem := client.Do(control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(c.Policy)}, &applied)
	if problem != nil {
		// It may have taken the policy and failed to carry out all of it. Then
		// the old one must not come back with its next start.
		var state control.State
		if err := client.Do(control.Request{Op: control.OpState}, &state); err != nil || state.Digest != firewall.Digest(c.Policy) {
			return "", problem
		}
	}
	*cut += applied.Cut
	if err := r.e.fill(ctx, c, compose.PolicyVolume); err != nil || problem != nil {
		return "", errors.Join(problem, err)
	}
	var state control.State
	err = client.Do(control.Request{Op: control.OpState}, &state)
	return state.Digest, err
}

// cutText says how many connections a new policy ended.
func cutText(n int) string {
	switch n {
	case 0:
		return "no connection ended"
	case 1:
		return "1 connection ended"
	}
	return fmt.Sprintf("%d connections ended", n)
}
