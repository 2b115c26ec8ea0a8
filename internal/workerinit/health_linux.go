package workerinit

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/llmdo/workshop/internal/workerinit/pid1"
)

// Health returns nil if the worker is ready: it repeats the checks of PID 1 with the
// arguments of PID 1.
func Health(ctx context.Context) error {
	args, ok, err := pid1.Arguments()
	if err != nil {
		return err
	}
	if !ok {
		return errors.New("PID 1 is not a gate")
	}
	o, err := parseArgs(args, io.Discard)
	if err != nil {
		return err
	}
	o.Workdir = "" // PID 1 is in it
	o.Timeout = 2 * time.Second
	return Pass(ctx, o)
}
