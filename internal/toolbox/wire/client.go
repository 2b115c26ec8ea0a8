package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// Conn is the client's side of a connection. It is safe for use by several
// goroutines.
type Conn struct {
	link
}

// NewClient makes the client's side. Closing rwc must end a Read and a Write
// that are under way, as it does for sockets and for pipes that aren't in
// blocking mode. Where rwc has a SyscallConn, that must be what Write writes to:
// it saves a change of goroutines.
func NewClient(rwc io.ReadWriteCloser) *Conn {
	c := new(Conn)
	c.link.init(rwc, false)
	c.run(c.message)
	return c
}

// Call makes a call and waits for its answer, which is decoded into result
// unless that is nil. When ctx ends, the call is cancelled and Call returns
// ctx's cause at once; the answer is thrown away. What the other side refuses
// is an [*Error]; a connection that ends before is a [*LostError].
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	o, err := c.begin(ctx, method, params)
	if err != nil {
		return err
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		o.cancel(context.Cause(ctx))
		<-o.done
	}
	return o.Wait(result)
}

// Start makes a call that has streams or notifications. The end of ctx cancels
// it, until it is answered.
func (c *Conn) Start(ctx context.Context, method string, params any) (*Outgoing, error) {
	o, err := c.begin(ctx, method, params)
	if err != nil {
		return nil, err
	}
	o.ctx = ctx
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { o.cancel(context.Cause(ctx)) })
		o.mu.Lock()
		o.stop = stop
		o.mu.Unlock()
		select {
		case <-o.done: // before stop was set
			stop()
		default:
		}
	}
	return o, nil
}

// message takes one message of the server.
func (c *Conn) message(b []byte) error {
	e, f := parseEnvelope(b)
	if f != nil {
		return f
	}
	if e.method != "" {
		return c.notified(&e)
	}
	if e.null {
		return fmt.Errorf("the peer ended the connection: %w", parseError(e.err))
	}
	c.mu.Lock()
	call, known := c.calls[e.id], e.id <= c.last
	delete(c.calls, e.id)
	c.mu.Unlock()
	switch {
	case !known:
		return faultf(CodeInvalidRequest, "an answer is for call %d, which was never made", e.id)
	case call == nil:
		return nil // cancelled by now
	}
	o := call.owner.(*Outgoing)
	if e.err != nil {
		o.answer(nil, parseError(e.err), nil)
	} else {
		o.answer(e.result, nil, nil)
	}
	return nil
}

func (c *Conn) notified(e *envelope) error {
	if e.id != 0 {
		return faultf(CodeInvalidRequest, "the server made a call, %q; only clients do", e.method)
	}
	_, call, err := c.notification(e)
	if call != nil {
		call.deliver(Notification{Method: e.method, Params: e.params})
	}
	return err
}

func parseError(b []byte) error {
	e := new(Error)
	if json.Unmarshal(b, e) != nil || e.Message == "" && e.Code == 0 {
		return &Error{Code: CodeInternal, Message: "the peer refused, with an error that is not valid"}
	}
	return e
}

// Done is closed when the connection has ended; Err says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is nil until Done.
func (c *Conn) Err() error { return c.link.Err() }

// Close ends the connection and every call on it. It waits for nobody longer
// than a moment.
func (c *Conn) Close() error {
	c.end(ErrClosed)
	c.waitClosed()
	return nil
}
