package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// begin sends a request.
func (c *Conn) begin(ctx context.Context, method string, params any) (*Outgoing, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if !isMethod(method) {
		return nil, &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf("%.80q can't be the name of a method", method)}
	}
	select {
	case c.out.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.done:
		return nil, &LostError{Cause: c.Err()}
	}
	m, err := newRequest(method, params)
	if err != nil {
		<-c.out.slots
		return nil, err
	}
	o := &Outgoing{ctx: ctx, done: make(chan struct{})}
	o.l, o.owner = &c.link, o

	if err := c.enter(o, m); err != nil {
		<-c.out.slots
		return nil, &LostError{Cause: err}
	}
	c.out.kick()
	return o, nil
}

// enter gives the call its id and queues it: ids must grow in the order of
// sending.
func (c *Conn) enter(o *Outgoing, m *message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return c.err
	case c.last == 1<<32-1:
		return errors.New("it has no id left for another call: connect again")
	}
	c.last++
	o.id = c.last
	c.calls[o.id] = &o.call
	m.id(o.id)
	m.buf.WriteByte('}')
	c.out.push(frame{b: m.frame(), kind: frameMessage, id: o.id, msg: m, req: &o.sent}, false)
	return nil
}

// newRequest encodes all but the id.
func newRequest(method string, params any) (*message, error) {
	m := newMessage()
	m.method(method)
	if raw, ok := params.(json.RawMessage); params == nil || ok && raw == nil {
		return m, nil
	}
	err := m.value(`,"params":`, params)
	if err == nil {
		err = m.refused()
	}
	if err != nil {
		return nil, &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("the arguments of %s can't be sent: %v", method, err)}
	}
	return m, nil
}
