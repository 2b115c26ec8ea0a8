package docker

import (
	"context"
	"io"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// reload sends the running guard the policy, then writes it to the volume.
//
// The volume is read-only in the guard, so it is filled through a helper. The
// archive API removes a file before it writes the new one: a guard that starts in
// between finds no file, or an incomplete one that isn't a valid policy. It exits,
// and the engine restarts it; until then its rooms are closed.
func (r *run) reload(ctx context.Context, s engine.Step) error {
	return r.runner.ReloadPolicy(ctx, s, engine.Reload{
		Dial: func(ctx context.Context) (io.ReadWriteCloser, error) { return r.e.dialControl(ctx, s.ObjectID) },
		Fill: func(ctx context.Context) error { return r.e.fill(ctx, r.p.Compiled, compose.PolicyVolume) },
	})
}
