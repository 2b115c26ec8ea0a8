package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// helloTime bounds the hello of a session. How long the way to it takes is the
// Dialer's matter: it may start the workshop first.
const helloTime = 30 * time.Second

// link is the connection of one worker session: opened when it is needed, kept, and
// opened again when it was lost.
type link struct {
	session *workerSession
	turn    chan struct{} // one connects at a time

	// turn guards these.
	live     *live
	closed   bool
	instance string // that the last session was in

	last atomic.Pointer[live] // the last session, to be looked at without a turn
}

// lost reports whether there was a session, and it has ended.
func (l *link) lost() bool {
	v := l.last.Load()
	return v != nil && v.ended()
}

// live is an open session.
type live struct {
	conn    *wire.Conn
	welcome protocol.Welcome
}

func (l *live) ended() bool {
	select {
	case <-l.conn.Done():
		return true
	default:
		return false
	}
}

// endsWithin reports whether the session ends in that time.
func (l *live) endsWithin(ctx context.Context, d time.Duration) bool {
	select {
	case <-l.conn.Done():
		return true
	case <-time.After(d):
		return false
	}
}

// get returns the open session, or opens one.
func (l *link) get(ctx context.Context) (*live, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	if l.closed {
		return nil, ErrClosed
	}
	if l.live != nil && !l.live.ended() {
		return l.live, nil
	}
	l.live = nil
	v, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	l.live = v
	l.last.Store(v)
	l.session.narrow(v.welcome.Grant)
	is := v.welcome.Instance
	if l.instance != "" && is != "" && is != l.instance {
		l.session.restarted.Store(true)
	}
	l.instance = is
	return v, nil
}

func (l *link) open(ctx context.Context) (*live, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.session.life, func() { cancel(ErrClosed) })
	defer stop()
	name := l.session.worker.Name
	fail := func(err error) error {
		if l.session.life.Err() != nil {
			return ErrClosed
		}
		return &UnreachableError{Worker: name, Cause: err}
	}
	rwc, err := l.session.host.c.Dial(ctx, name)
	if err != nil {
		return nil, fail(err)
	}
	ctx, late := context.WithTimeoutCause(ctx, helloTime, fmt.Errorf("no answer in %v", helloTime))
	defer late()
	v := &live{conn: wire.NewClient(rwc)}
	hello := protocol.Hello{Version: wire.Version, Client: l.session.host.c.Client, Role: protocol.RoleTools}
	if err := v.conn.Call(ctx, "hello", hello, &v.welcome); err != nil {
		v.conn.Close()
		return nil, fail(helloError(err))
	}
	if v.welcome.Version != wire.Version {
		v.conn.Close()
		return nil, fail(fmt.Errorf("it speaks version %q of the protocol, this program %q: run `workshop up` with this program", v.welcome.Version, wire.Version))
	}
	return v, nil
}

// helloError says why a session ended before it began. A worker at its limits
// can't say so itself: its process dies while it starts.
func helloError(err error) error {
	var lost *wire.LostError
	if !errors.As(err, &lost) || lost.Cause == nil {
		return err
	}
	cause := lost.Cause
	if op, ok := errors.AsType[*net.OpError](cause); ok {
		cause = op.Err // without the names of its sockets
	}
	return fmt.Errorf("it ended before it answered (%w). Most often the worker has no process left for it, or no memory: each client takes about ten of resources.pids; end other clients or raise it", cause)
}

// close ends the session; get opens none afterwards.
func (l *link) close() {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.closed = true
	if l.live != nil {
		l.live.conn.Close()
		l.live = nil
	}
}

// notSent reports that a call certainly wasn't executed, because the connection
// ended before it was sent.
func notSent(err error) bool {
	var lost *wire.LostError
	return errors.As(err, &lost) && !lost.Sent
}

// check returns why a call would fail, as far as the toolbox can find out without
// changing anything; one of an earlier version can't.
func (v *live) check(ctx context.Context, name string, args json.RawMessage) error {
	var none struct{}
	return v.conn.Call(ctx, "check", protocol.Call{Tool: name, Arguments: args}, &none)
}

// call runs one of our tools in the session.
func (v *live) call(ctx context.Context, name string, args json.RawMessage, progress func(Progress)) (json.RawMessage, error) {
	var raw json.RawMessage
	params := protocol.Call{Tool: name, Arguments: args}
	if progress == nil {
		err := v.conn.Call(ctx, "call", params, &raw)
		return raw, err
	}
	out, err := v.conn.Start(ctx, "call", params)
	if err != nil {
		return nil, err
	}
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		tell(out.Notified(), ended, progress)
	}()
	err = out.Wait(&raw)
	close(ended)
	<-told // nothing is told after the end
	return raw, err
}

// maxMessage is the longest message of progress, in characters.
const maxMessage = 200

// tell passes progress on until the call has ended.
func tell(from <-chan wire.Notification, ended <-chan struct{}, progress func(Progress)) {
	for {
		select {
		case <-ended:
			return
		case n, ok := <-from:
			if !ok {
				return
			}
			var p struct {
				Message string  `json:"message"`
				Done    float64 `json:"done"`
				Total   float64 `json:"total"`
			}
			if n.Method == "$/progress" && json.Unmarshal(n.Params, &p) == nil {
				progress(Progress{Message: diagtext.Printable(clip.Runes(p.Message, maxMessage)), Done: p.Done, Total: p.Total})
			}
		}
	}
}

// askTime bounds the search for the reason of a loss: a worker that is being
// restarted comes back in it.
const askTime = 3 * time.Second

const runsOn = "The worker itself runs on, but processes in the background are gone"

// endTime is how long a worker that is being stopped may still take sessions.
const endTime = 300 * time.Millisecond

// whyLost says what is known of the loss of a session, and why there is no way back;
// nil: there is one. It opens the next session for it, which reports whether it is in
// the same run of the worker.
func (s *workerSession) whyLost(before *live) (known string, _ *UnreachableError) {
	if s.life.Err() != nil {
		return "this client ended the session", nil
	}
	ctx, cancel := context.WithTimeout(s.life, askTime)
	defer cancel()
	a, b := before.welcome, protocol.Welcome{}
	var unreached error
	for {
		after, err := s.link.get(ctx)
		if err == nil {
			if b = after.welcome; a.Instance != b.Instance || !after.endsWithin(ctx, endTime) {
				break
			}
			continue
		}
		if ctx.Err() == nil {
			unreached = err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			e, _ := errors.AsType[*UnreachableError](unreached)
			return "the connection ended, and the worker doesn't run, or can't be reached", e
		}
	}
	switch {
	case a.Instance != "" && b.Instance != "" && a.Instance != b.Instance:
		s.restarted.Store(false) // this says it
		return "the worker was restarted, and " + gone, nil
	case a.OOMKills >= 0 && b.OOMKills > a.OOMKills:
		return "the process that runs its tools ended, perhaps OOM-killed: processes of the worker were, since it began. " + runsOn, nil
	case a.Instance != "" && a.Instance == b.Instance:
		return "the process that runs its tools ended, as when it is killed. " + runsOn, nil
	}
	return "the connection ended", nil
}
