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

// reloadTime is how long a guard may take to apply a policy, or to restart first:
// it responds in milliseconds.
const (
	reloadTime  = 15 * time.Second
	reloadAgain = 100 * time.Millisecond
)

// Reload is how an engine reaches a running guard, and its policy's volume.
type Reload struct {
	// Dial connects to the guard's control; the connection ends with ctx.
	Dial func(context.Context) (io.ReadWriteCloser, error)
	// Fill writes the policy of the plan into its volume.
	Fill func(context.Context) error
}

// ReloadPolicy sends the running guard the policy, then writes it to the volume, so
// that the old file stays if the guard refuses the policy. A guard that restarted in
// between has read the old file: this is detected, and the policy sent again; by
// then the file is the new one.
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
			return errors.New("the guard got the new policy but has another one: another program may have changed it; run `workshop up` again")
		default:
			others++
		}
		select {
		case <-ctx.Done():
		case <-time.After(reloadAgain):
		}
	}
}

// reloadOnce sends the policy once and returns the digest of the policy that the
// guard then has. It uses one connection, which a restart of the guard would close.
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
		// It may have applied the policy in part. Then the old one must not come
		// back with its next start.
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

// NoneEnded is the detail of a reload that ended no connection.
const NoneEnded = "no connection ended"

// cutText returns how many connections a new policy ended, in words.
func cutText(n int) string {
	switch n {
	case 0:
		return NoneEnded
	case 1:
		return "1 connection ended"
	}
	return fmt.Sprintf("%d connections ended", n)
}
