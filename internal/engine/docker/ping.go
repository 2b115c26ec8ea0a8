package docker

import "context"

// Ping asks the engine for its version, once. The client's first calls must not
// run at once: some read the version without a lock while another negotiates it.
func (e *Engine) Ping(ctx context.Context) error {
	e.negotiate.Do(func() {
		p, err := e.cli.Ping(ctx)
		if e.pinged = err; err == nil {
			e.cli.NegotiateAPIVersionPing(p)
		}
	})
	return e.explain(e.pinged)
}
