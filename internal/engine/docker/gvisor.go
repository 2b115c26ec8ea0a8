package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/made"
)

// errEnded: a container ended before it could be looked at.
var errEnded = errors.New("the container ended")

// endTime is how long a container that can't be seen may take to end.
const endTime = 2 * time.Second

// gvisorOutside reads of the main process of a container on gVisor, which is its kernel,
// what this machine shows of it: its flags, its limits and the sources of its mounts. They
// are nil where it can't be seen.
func (r *run) gvisorOutside(ctx context.Context, service, id string) (flags []string, limits *made.Limits, sources []engine.Source, err error) {
	for end := time.Now().Add(endTime); ; {
		i, err := r.e.inspect(ctx, id, service)
		switch {
		case err != nil:
			return nil, nil, nil, err
		case !i.State.Running:
			return nil, nil, nil, errEnded
		}
		if flags = engine.GVisorFlags(made.ReadArgs(i.State.Pid), id); flags != nil {
			if limits, err = made.ReadLimits(i.State.Pid); err != nil {
				err = fmt.Errorf("limits of %s: %w", service, err)
			}
			return flags, limits, sourcesOf(i.Mounts), err
		}
		if time.Now().After(end) {
			return nil, nil, nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, nil, context.Cause(ctx)
		case <-time.After(endTime / 20): // it may be ending
		}
	}
}

// sourcesOf are the sources of a container's bind mounts that PID 1 of other workers looks at
// (package workerinit): neither files that can only be read, which go on having their text,
// nor what is in /run, which is ours.
func sourcesOf(all []container.MountPoint) (out []engine.Source) {
	for _, m := range all {
		if m.Type != "bind" || strings.HasPrefix(m.Destination, "/run/") {
			continue
		}
		info, err := os.Stat(m.Source)
		if err == nil && (m.RW || info.IsDir()) {
			out = append(out, engine.Source{Target: m.Destination, Path: m.Source, File: made.FileID(m.Source)})
		}
	}
	return out
}
