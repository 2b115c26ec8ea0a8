package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/made"
)

// errEnded: a container ended before it could be looked at.
var errEnded = errors.New("the container ended")

// endTime is how long a container that can't be seen may take to end.
const endTime = 2 * time.Second

// gvisorOutside reads of the main process of a container on gVisor, which is its kernel,
// what this machine shows of it: its flags and its limits. They are nil where it can't be
// seen.
func (r *run) gvisorOutside(ctx context.Context, service, id string) (flags []string, limits *made.Limits, err error) {
	for end := time.Now().Add(endTime); ; {
		c, err := r.e.inspect(ctx, id, service)
		switch {
		case err != nil:
			return nil, nil, err
		case !c.State.Running:
			return nil, nil, errEnded
		}
		if flags = engine.GVisorFlags(made.ReadArgs(c.State.Pid), id); flags != nil {
			if limits, err = made.ReadLimits(c.State.Pid); err != nil {
				err = fmt.Errorf("limits of %s: %w", service, err)
			}
			return flags, limits, err
		}
		if time.Now().After(end) {
			return nil, nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(endTime / 20): // it may be ending
		}
	}
}
