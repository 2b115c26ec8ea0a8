package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
)

// reloadTime is what a guard gets to take a policy, and to come back where it
// just ends: it answers in milliseconds.
const (
	reloadTime  = 15 * time.Second
	reloadAgain = 100 * time.Millisecond
)

// Reload is how an engine reaches a guard that runs, and its policy's volume.
type Reload struct {
	// Dial connects to the guard's control; the connection ends with ctx.
	Dial func(context.Context) (io.ReadWriteCloser, error)
	// Fill puts the policy of the plan into its volume.
	Fill func(context.Context) error
}

// ReloadPolicy gives the running guard the policy, and then its volume. In this
// order the file stays the old one when the guard refuses it. A guard that ended
// in between had read the old file: that shows, and it is asked again; by then
// the file is the new one.
func (r *Runner) ReloadPolicy(ctx context.Context, s Step, way Reload) error {
	limit := reloadTime
	if r.Plan.ReloadTimeout > 0 {
		limit = min(limit, r.Plan.ReloadTimeout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &SilentGuardError{Container: s.Target, After: limit})
	defer cancel()
	var (
		cut, others int
		problem     error
		refused     *control.RefusedError
	)
	for {
		has, err := r.reloadOnce(ctx, way, &cut)
		switch {
		case ctx.Err() != nil:
			return cmp.Or(problem, context.Cause(ctx))
		case err == nil && has == firewall.Digest(r.Plan.Compiled.Policy):
			r.Emit(Event{Step: s, Status: StepProgress, Detail: cutText(cut)})
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
func (r *Runner) reloadOnce(ctx context.Context, way Reload, cut *int) (string, error) {
	c := r.Plan.Compiled
	conn, err := way.Dial(ctx)
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
	if err := way.Fill(ctx); err != nil || problem != nil {
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
