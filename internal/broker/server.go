package broker

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"time"

	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/sshagent"
)

const (
	// look is how often it is looked whether what may be leased is what it was.
	look = 5 * time.Second
	// writeTime bounds what the guard is told at a time: until then nothing else is done, and
	// who asks waits for [callTime].
	writeTime = 5 * time.Second
	// attachAgain is the pause before the guard is asked again.
	attachAgain = time.Second
)

// Server carries a [Core] out. All fields are needed.
type Server struct {
	// Attach connects to the guard and attaches.
	Attach func(context.Context) (io.ReadWriteCloser, error)
	// Use takes over what an `up` says; Allowed returns what may be leased by that, by the
	// user's file and by what the user agreed to, as they are now. An error leases nothing.
	Use     func(Use) error
	Allowed func() (Allowed, error)
	// Agents returns the keys that workers may have signed by, by their dial-in directories,
	// and Dial connects to the user's ssh-agent. Both may be nil.
	Agents func() (map[string][]sshagent.Key, error)
	Dial   func() (net.Conn, error)
	// Ask asks the user about a push; nil: nobody can be asked. A person is asked about one
	// push at a time.
	Ask func(context.Context, *lease.Ask) (lease.Decided, error)
	// Read reads a value.
	Read func(context.Context, credential.Credential) (Value, error)
	// Gone reports whether nobody needs this process any more.
	Gone func() bool
	// Idle is how long it waits for a guard that isn't there.
	Idle time.Duration
	Log  *log.Logger
	// late is writeTime in tests; 0: writeTime itself.
	late time.Duration
}

// loop is what one run has.
type loop struct {
	*Server
	core     *Core
	conn     io.ReadWriteCloser // to the guard; nil: none
	since    time.Time          // without one
	problem  string             // of what may be leased
	events   chan func()
	ctx      context.Context
	attached bool // and the guard has said its lines
	doors    doors
	asked    map[uint64]*asking // questions of the attached guard
	turn     chan struct{}      // who holds its one element may ask
}

// ErrIdle is returned where no guard was there for too long.
var ErrIdle = errors.New("no guard was there for too long")

// Run serves until ctx ends, nobody needs it, somebody says stop, or there is no guard.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &loop{Server: s, core: NewCore(), since: time.Now(), events: make(chan func()), ctx: ctx, asked: map[uint64]*asking{}, turn: make(chan struct{}, 1)}
	r.doors = doors{dial: s.Dial, log: s.Log, open: map[string]*door{}}
	defer r.doors.set(nil)
	go r.accept(l, cancel)
	go r.attachAgain()
	tick := time.NewTicker(look)
	defer tick.Stop()
	defer l.Close()
	defer r.detach()
	for r.next(true); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case f := <-r.events:
			f()
		case <-tick.C:
			if s.Gone() {
				return nil
			}
			if r.conn == nil && len(r.doors.open) == 0 && time.Since(r.since) > s.Idle {
				return ErrIdle
			}
			r.next(true)
		}
	}
}

// do has f run by the loop.
func (r *loop) do(f func()) {
	select {
	case r.events <- f:
	case <-r.ctx.Done():
	}
}

// next carries out what is to be done now. decide: what may be leased is looked at anew.
func (r *loop) next(decide bool) {
	if decide {
		allowed, err := r.Allowed()
		problem := ""
		if err != nil {
			allowed, problem = nil, err.Error()
		}
		if problem != r.problem {
			r.Log.Printf("what may be leased: %s", problem)
		}
		r.problem = problem
		r.core.Allow(allowed)
		r.look()
	}
	s := r.core.Next(time.Now())
	r.send(s.Send)
	for _, x := range s.Read {
		go func() {
			v, err := r.Read(r.ctx, x.Credential)
			if err != nil {
				r.Log.Printf("credential %s: %v", x.Credential.Name, err)
			}
			r.do(func() {
				r.core.Got(x, v, err, time.Now())
				r.next(false)
			})
		}()
	}
}

// look has the workers' agents be what they may be now.
func (r *loop) look() {
	if r.Agents == nil {
		return
	}
	keys, err := r.Agents()
	if err != nil { // the problem is that of leases, too
		keys = nil
	}
	r.doors.set(keys)
}

// send writes messages to the guard, if there is one. A guard that takes them slowly is left:
// what is to be done meanwhile, as to close a worker's agent, must not wait for it.
func (r *loop) send(all []any) {
	c := r.conn
	var err error
	if c != nil {
		late := time.AfterFunc(cmp.Or(r.late, writeTime), func() { c.Close() })
		defer late.Stop()
	}
	end := time.Now().Add(cmp.Or(r.late, writeTime))
	for _, m := range all {
		switch {
		case c == nil || err != nil:
		case time.Now().After(end):
			err = errSlow
		default:
			err = lease.Write(c, m)
		}
		if l, is := m.(*lease.Lease); is {
			l.Value.Forget()
		}
	}
	if err != nil {
		r.Log.Printf("the guard: %v", err)
		r.detach()
	}
}

var errSlow = errors.New("it takes too long to take messages")

func (r *loop) detach() {
	if r.conn != nil {
		r.conn.Close()
		r.conn, r.since, r.attached = nil, time.Now(), false
		r.endAsks()
	}
}

// attachAgain keeps a connection to the guard.
func (r *loop) attachAgain() {
	said := ""
	for r.ctx.Err() == nil {
		c, err := r.Attach(r.ctx)
		if err != nil {
			if err.Error() != said {
				said = err.Error()
				r.Log.Printf("not attached: %s", said)
			}
		} else {
			said = ""
			r.hear(c)
		}
		select {
		case <-r.ctx.Done():
		case <-time.After(attachAgain):
		}
	}
}

// hear takes what a guard says until its connection ends.
func (r *loop) hear(c io.ReadWriteCloser) {
	defer c.Close()
	r.do(func() {
		r.detach()
		r.conn = c
		r.core.Attached()
		r.Log.Printf("attached")
	})
	in := lease.NewReader(c)
	defer in.Close()
	for {
		m, err := in.FromGuard()
		if err != nil {
			r.do(func() {
				if r.conn == c {
					r.Log.Printf("the guard: %v", err)
					r.detach()
				}
			})
			return
		}
		r.do(func() {
			if r.conn != c {
				return
			}
			switch m := m.(type) {
			case *lease.Lines:
				r.core.Lines(m.Lines)
				r.attached = true
			case *lease.Refused:
				if r.core.Refused(m, time.Now()) {
					r.Log.Printf("credential %s: it was refused, by a host (401) or the upstream proxy (407)", m.Credential)
				}
			case *lease.Ask:
				r.ask(m)
			case *lease.AskEnded:
				r.endAsk(m.ID)
			}
			r.next(false)
		})
	}
}
