package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/llmdo/workshop/internal/engine"
)

// answerTime bounds how long an engine may take for a question about itself.
const answerTime = 10 * time.Second

var errSilent = fmt.Errorf("no answer within %v", answerTime)

const restartHint = "restart what listens there, or choose another engine: `--engine namespace`"

// silent is the error about an engine that accepts connections and doesn't answer.
func (e *Engine) silent() error {
	return &UnreachableError{Endpoint: e.endpoint.host, Flavour: e.opts.Flavour, Err: errSilent, Hint: restartHint}
}

// Ping negotiates the API version, once. The client's first calls must not be
// concurrent: some read the version without a lock while another negotiates it.
func (e *Engine) Ping(ctx context.Context) error {
	e.negotiate.Do(func() {
		ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errSilent)
		defer cancel()
		p, err := e.cli.Ping(ctx)
		if context.Cause(ctx) == errSilent {
			err = e.silent()
		}
		if e.pinged = notDocker(e, err); err == nil {
			e.cli.NegotiateAPIVersionPing(p)
		}
	})
	return e.explain(e.pinged)
}

// Capabilities returns those of a container engine that Compose supports.
func (e *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Contained: true, Compose: true}
}

// CanLearn returns nil: learning works on every kernel.
func (e *Engine) CanLearn() error { return nil }

// Begin does nothing.
func (e *Engine) Begin(string) {}

// Tidy does nothing: a project has only containers, networks and volumes.
func (e *Engine) Tidy(context.Context, string, string) error { return nil }
