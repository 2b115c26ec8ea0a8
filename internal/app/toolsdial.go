package app

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
)

// dial is the Host's [session.Dialer].
func (h *Tools) dial(ctx context.Context, worker string) (io.ReadWriteCloser, error) {
	conn, err := h.connect(ctx, worker)
	h.toldMu.Lock()
	defer h.toldMu.Unlock()
	if err != nil {
		h.unreached[worker] = plainText(err)
		return nil, err
	}
	delete(h.toldPerson, h.unreached[worker]) // it is told again where it comes back
	return conn, nil
}

// connect connects to a worker. What isn't up yet is waited for.
func (h *Tools) connect(ctx context.Context, worker string) (io.ReadWriteCloser, error) {
	h.Begin()
	select {
	case <-h.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := h.mended(ctx, worker); err != nil {
		return nil, told(err)
	}
	conn, err := h.engine.Session(ctx, h.c.Name, worker, h.c.Dir)
	return conn, told(EngineError(err))
}

// toldError is a failure for a client that sees its text alone.
type toldError struct{ *Failure }

func told(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok && f.Err != nil {
		return toldError{f}
	}
	return err
}

func (e toldError) Error() string {
	if len(e.AllHints()) == 0 {
		return e.Failure.Error()
	}
	return e.Failure.Error() + " (" + strings.Join(e.AllHints(), "; ") + ")"
}

func (e toldError) Unwrap() error { return e.Failure }

// Wait waits until the workers are up, and returns why they aren't.
func (h *Tools) Wait() error {
	<-h.ready
	return h.Failed()
}

// Failed returns why the workers couldn't be started, as far as that is known and wasn't
// mended since.
func (h *Tools) Failed() error {
	select {
	case <-h.ready:
	default:
		return nil
	}
	h.errMu.Lock()
	defer h.errMu.Unlock()
	return h.err
}

// mended returns why the workers aren't up. After a start that failed it looks again
// whether one is: the person may have started it since.
func (h *Tools) mended(ctx context.Context, worker string) error {
	h.errMu.Lock()
	defer h.errMu.Unlock()
	if h.err == nil || h.engine == nil {
		return h.err
	}
	seen, err := h.engine.Look(ctx, false)
	if err == nil && !slices.Contains(h.missing(seen), worker) {
		if h.err = nil; h.env.frozen(h.c.Source) {
			h.err = h.refuseChanged(ctx)
		}
	}
	return h.err
}

// SayFailure says to the person why calls fail, once until there is a way to the
// worker again.
func (h *Tools) SayFailure(err error) {
	text := plainText(err)
	if !h.untold(text) {
		return
	}
	h.env.warn("%s", Printable(text))
	for _, hint := range Hints(err) {
		h.env.hint("%s", hint)
	}
}

// plainText is an error without what it says to do.
func plainText(err error) string {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Error()
	}
	return err.Error()
}
