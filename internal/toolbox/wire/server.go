package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// maxHeld bounds the parameters of the calls under way, together.
const maxHeld = 4 * MaxMessage

// Handler answers one call. ctx ends when the call is cancelled or the
// connection ends. What it returns is marshalled; an [*Error] goes out as it
// is, any other error as CodeInternal, or as CodeCancelled where the call was
// cancelled. A panic is CodeInternal. The connection waits for its handlers.
type Handler func(ctx context.Context, c *Incoming) (any, error)

// Incoming is a call that a server answers.
type Incoming struct {
	Method string
	Params json.RawMessage // an object or an array; nil where there are none

	call
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Stream returns a stream of the call: stdin can be read, stdout and stderr be
// written. Writing waits for credit; it fails when the call is cancelled or the
// connection has ended. What isn't closed is closed when the handler has
// returned.
func (c *Incoming) Stream(n byte) io.ReadWriteCloser { return c.stream(n) }

// Notify sends a notification about the call, such as "$/progress"; params gets
// the call's id. It overtakes what was written to streams.
func (c *Incoming) Notify(method string, params map[string]any) error {
	return c.notify(c.ctx, method, params)
}

// Notified delivers notifications of the client about the call ("$/signal"),
// until the call ends; the oldest are dropped where nobody takes them.
func (c *Incoming) Notified() <-chan Notification { return c.notified() }

// lost ends the call together with its connection.
func (c *Incoming) lost(err error) {
	c.cancel(err)
	c.end(err)
}

// maxIdle is how many goroutines wait for the next call: one that has grown
// its stack answers faster than a new one.
const maxIdle = 4

// server is the side that answers.
type server struct {
	link
	handler Handler
	ctx     context.Context
	idle    chan *Incoming
	waiting atomic.Int32
	workers sync.WaitGroup
	// Calls whose handlers run, and the bytes of their parameters; under link.mu.
	running int
	held    int
}

// Serve answers calls until the connection ends, and returns why: nil where
// the client has closed it between two frames, ctx's cause where that ended.
// When it returns, all handlers have. Closing rwc must end a Read and a Write
// that are under way, as it does for sockets and for pipes that aren't in
// blocking mode. Where rwc has a SyscallConn, that must be what Write writes to:
// it saves a change of goroutines.
func Serve(ctx context.Context, rwc io.ReadWriteCloser, h Handler) error {
	// The connection ends before the handlers' contexts do, so that none of them
	// answers its end.
	handlers, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s := &server{handler: h, ctx: handlers, idle: make(chan *Incoming)}
	s.link.init(rwc, true)
	stop := context.AfterFunc(ctx, func() { s.end(context.Cause(ctx)) })
	s.run(s.message)
	<-s.done
	stop()
	cancel(s.err)
	s.workers.Wait()
	s.waitClosed()
	if s.err == ErrPeerClosed {
		return nil
	}
	return s.err
}

// message takes one message of the client.
func (s *server) message(b []byte) error {
	e, f := parseEnvelope(b)
	switch {
	case f != nil:
		return f
	case e.method == "":
		return faultf(CodeInvalidRequest, "the client sent an answer, but was asked nothing")
	case e.id == 0:
		return s.notified(&e)
	}
	return s.request(&e)
}

func (s *server) notified(e *envelope) error {
	id, c, err := s.notification(e)
	if err != nil {
		return err
	}
	if e.method == "$/cancel" && id == 0 {
		return faultf(CodeInvalidRequest, "a cancel names no call")
	}
	if c == nil {
		return nil
	}
	in := c.owner.(*Incoming)
	if e.method == "$/cancel" {
		in.lost(ErrCancelled)
		return nil
	}
	c.deliver(Notification{Method: e.method, Params: e.params})
	return nil
}

func (s *server) request(e *envelope) error {
	s.mu.Lock()
	if s.ended {
		defer s.mu.Unlock()
		return s.err
	}
	if e.id <= s.last {
		s.mu.Unlock()
		return faultf(CodeInvalidRequest, "a call has the id %d, but the last one had %d: ids must grow", e.id, s.last)
	}
	s.last = e.id
	var refused *Error
	switch {
	case e.params != nil && e.params[0] != '{' && e.params[0] != '[':
		refused = &Error{Code: CodeInvalidRequest, Message: "the parameters of a call must be an object or an array"}
	case s.running >= MaxInFlight:
		refused = &Error{Code: CodeBusy, Message: fmt.Sprintf("%d calls are under way already: wait until one has ended", MaxInFlight)}
	case s.held+len(e.params) > maxHeld:
		refused = &Error{Code: CodeBusy, Message: "the arguments of the calls that are under way are too large together: wait until one has ended"}
	}
	if refused != nil {
		s.late += Window + 1
		s.mu.Unlock()
		select {
		case s.out.refusals <- struct{}{}:
		case <-s.done:
			return s.Err()
		}
		s.out.push(frame{b: errorMessage(e.id, refused.Code, refused.Message), kind: frameRefusal}, false)
		s.out.kick()
		return nil
	}
	in := &Incoming{Method: e.method, Params: e.params}
	in.l, in.id, in.owner = &s.link, e.id, in
	in.ctx, in.cancel = context.WithCancelCause(s.ctx)
	s.calls[e.id] = &in.call
	s.running++
	s.held += len(e.params)
	s.workers.Add(1)
	s.mu.Unlock()
	select {
	case s.idle <- in:
		s.workers.Done()
	default:
		go s.work(in)
	}
	return nil
}

// work answers calls, until there are others enough who do.
func (s *server) work(in *Incoming) {
	defer s.workers.Done()
	for in != nil {
		s.answer(in)
		in = nil
		if s.waiting.Add(1) <= maxIdle {
			select {
			case in = <-s.idle:
			case <-s.done:
			}
		}
		s.waiting.Add(-1)
	}
}

// answer runs a call's handler and sends what it says.
func (s *server) answer(in *Incoming) {
	var result any
	err := errors.New("the tool ended without a result")
	// Deferred, for runtime.Goexit in a handler ends this goroutine.
	defer func() { s.finish(in, result, err) }()
	result, err = s.handle(in)
}

// finish sends the answer of a call whose handler has returned.
func (s *server) finish(in *Incoming, result any, err error) {
	cancelled := context.Cause(in.ctx) == ErrCancelled
	in.cancel(ErrCallEnded)
	in.end(nil)
	wrote := in.settle()
	slot := false
	select {
	case s.out.slots <- struct{}{}:
		slot = true
	case <-s.done:
	}
	var m *message
	if slot {
		m = newAnswer(in.id, result, err, cancelled)
	}
	// The client may make the next call as soon as it has the answer.
	s.mu.Lock()
	delete(s.calls, in.id)
	s.running--
	s.held -= len(in.Params)
	s.mu.Unlock()
	if slot {
		s.out.push(frame{b: m.frame(), kind: frameMessage, msg: m}, wrote)
		s.out.kick()
	}
}

// handle runs the handler. A panic in it is its call's error, no end of the
// others.
func (s *server) handle(in *Incoming) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, &Error{Code: CodeInternal, Message: fmt.Sprintf("internal error of the tool: %v", p)}
		}
	}()
	return s.handler(in.ctx, in)
}

// newAnswer encodes the answer of a call, or the error that it can't be.
func newAnswer(id uint32, result any, err error, cancelled bool) *message {
	if err == nil {
		m, fail := newResult(id, result)
		if fail == nil {
			return m
		}
		err = fail
	}
	var e *Error
	switch {
	case cancelled:
		e = &Error{Code: CodeCancelled, Message: ErrCancelled.Error()}
	case !errors.As(err, &e) || e == nil:
		e = &Error{Code: CodeInternal, Message: err.Error()}
	}
	m := newMessage()
	m.id(id)
	if fail := m.value(`,"error":`, e); fail != nil || m.refused() != nil {
		m = newMessage()
		m.id(id)
		_ = m.value(`,"error":`, &Error{Code: CodeInternal, Message: "the call failed, with an error that can't be sent"})
	}
	m.buf.WriteByte('}')
	return m
}

func newResult(id uint32, result any) (*message, error) {
	m := newMessage()
	m.id(id)
	if err := m.value(`,"result":`, result); err != nil {
		return nil, fmt.Errorf("the result can't be sent: %w", err)
	}
	if err := m.refused(); err != nil {
		return nil, fmt.Errorf("the result can't be sent: %w", err)
	}
	m.buf.WriteByte('}')
	return m, nil
}
