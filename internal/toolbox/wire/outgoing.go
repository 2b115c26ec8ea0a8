package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
)

// Outgoing is a call that a client made.
type Outgoing struct {
	call
	ctx  context.Context
	sent atomic.Int32
	stop func() bool // of ctx's hook; under call.mu

	done   chan struct{} // closed after these were set
	result json.RawMessage
	err    error
}

// Stream returns a stream of the call: stdin can be written, stdout and stderr
// be read (io.EOF at their end, which an answer is as well). Reads are what
// gives the other side credit, so output that isn't read holds up the call;
// closing an output throws the rest of it away. A write waits for credit and
// fails when the call has ended; closing stdin is its end for the other side.
func (o *Outgoing) Stream(n byte) io.ReadWriteCloser { return o.stream(n) }

// Notify sends a notification about the call; params gets the call's id. It
// overtakes what was written to stdin.
func (o *Outgoing) Notify(method string, params map[string]any) error {
	return o.notify(o.ctx, method, params)
}

// Notified delivers notifications about the call, until it is answered; the
// oldest are dropped where nobody takes them.
func (o *Outgoing) Notified() <-chan Notification { return o.notified() }

// Wait waits for the answer. The streams may still hold bytes then.
func (o *Outgoing) Wait(result any) error {
	<-o.done
	if o.err != nil || result == nil {
		return o.err
	}
	if raw, ok := result.(*json.RawMessage); ok {
		*raw = o.result
		return nil
	}
	if err := json.Unmarshal(o.result, result); err != nil {
		return fmt.Errorf("unexpected form of the response: %w", err)
	}
	return nil
}

// answer ends the call: with an answer, or with the cause of there being none.
// Who took the call out of link.calls does it.
func (o *Outgoing) answer(result json.RawMessage, err, cause error) {
	o.end(cause)
	o.mu.Lock()
	stop := o.stop
	o.mu.Unlock()
	if stop != nil {
		stop()
	}
	o.result, o.err = result, err
	if cause != nil {
		o.err = cause
	}
	close(o.done)
}

// lost ends the call together with its connection.
func (o *Outgoing) lost(err error) {
	o.answer(nil, nil, &LostError{Cause: err, Sent: o.sent.Load() == reqBegun})
}

// cancel ends the call here at once, and asks the other side to.
func (o *Outgoing) cancel(cause error) {
	o.l.mu.Lock()
	known := o.l.calls[o.id] == &o.call
	delete(o.l.calls, o.id)
	o.l.mu.Unlock()
	if !known {
		return // answered or lost at the same time: done is closed or will be
	}
	o.end(cause)
	o.settle() // nothing is queued for the call any more
	if !o.l.out.withdraw(o.id, &o.sent) {
		m, err := newNotification("$/cancel", map[string]uint32{"id": o.id})
		if err == nil {
			o.l.out.push(frame{b: m.frame()}, false)
			o.l.out.kick()
		}
	}
	o.answer(nil, nil, cause)
}
