package guard

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/dns"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/inbound"
	"github.com/llmdo/workshop/internal/guard/kept"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/guard/proxy"
	"github.com/llmdo/workshop/internal/guard/share"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/room/handover"
)

// room is one room of the workshop, across all its restarts.
type room struct {
	guard   *Guard
	name    string
	places  *share.Room // connections
	large   *share.Room // large heads
	secure  *share.Room // connections to endpoints' hosts
	asking  *share.Room // questions to upstream
	waiting *share.Room // questions of workers that wait for those
	pins    dns.Pins
	wild    dns.Wildcards
	budget  proxy.Budgets
	kept    kept.File
	tried   tried
	served  chan struct{} // closed when it is served for the first time, or can't be
	once    sync.Once
	// reopened is closed when a room that was unreadable may be served
	reopened chan struct{}

	telling sync.Mutex // held while the room is sent its ports
	mu      sync.Mutex
	session *session // nil while the room is away
	why     string   // why it is closed; "" if it isn't
}

func newRoom(g *Guard, name string) *room {
	r := &room{
		guard: g, name: name, served: make(chan struct{}), reopened: make(chan struct{}),
		places: g.places.Room(), large: g.large.Room(), secure: g.secure.Room(), asking: g.asking.Room(), waiting: g.waiting.Room(),
	}
	r.budget.Record = r.recordBudgets
	return r
}

// Back-off of reconnecting to a room.
const (
	firstWait = 5 * time.Millisecond
	longWait  = 500 * time.Millisecond
)

// run serves the room and reconnects until ctx ends.
func (r *room) run(ctx context.Context) {
	wait := firstWait
	for ctx.Err() == nil {
		if r.serve(ctx) {
			wait = firstWait
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, longWait)
	}
}

// serve takes the room's sockets and serves them until the room or ctx ends. It
// reports whether the room was served.
func (r *room) serve(ctx context.Context) bool {
	client, err := handover.Dial(ctx, r.guard.socket(r.name))
	if err != nil {
		return false
	}
	defer client.Close()
	sockets, err := client.Sockets()
	if err != nil {
		return false
	}
	defer sockets.Close()
	if err := r.keep(client); err != nil {
		if unreadable, ok := errors.AsType[*unreadableError](err); ok {
			r.unreadable(ctx, client, unreadable)
		} else if ctx.Err() == nil {
			r.guard.note(events.Event{Room: r.name, Reason: events.ReasonKept, Rule: clip.Bytes("not served: "+err.Error(), maxText)})
		}
		return false
	}
	s, err := r.begin(ctx, client, &sockets)
	if err != nil {
		return false
	}
	r.once.Do(func() { close(r.served) })
	select {
	case <-client.Done():
	case <-ctx.Done():
	}
	r.set(nil)
	s.close()
	return true
}

// begin sends the room its ports and then serves it. A concurrent change of the
// policy is either seen here, or finds the session and sends the ports again: both
// hold room.telling.
func (r *room) begin(ctx context.Context, client *handover.Client, sockets *handover.Sockets) (*session, error) {
	r.telling.Lock()
	defer r.telling.Unlock()
	ports := firewall.RoomPorts(r.policy().RoomPolicy)
	listeners, err := client.Redirect(ports)
	taken := new(handover.TakenError)
	if err != nil && !errors.As(err, &taken) {
		return nil, err
	}
	s, openErr := r.open(ctx, client, sockets)
	if openErr != nil {
		closeListeners(listeners)
		return nil, openErr
	}
	if openErr := s.serve(listeners); openErr != nil {
		s.close()
		return nil, openErr
	}
	s.ports = ports
	if err != nil { // one program of a worker must not take the network from all
		s.ports = portsOf(listeners)
		r.guard.note(events.Event{Room: r.name, Reason: events.ReasonTaken, Rule: clip.Bytes(taken.Text, maxText)})
	}
	r.set(s)
	return s, nil
}

func (r *room) set(s *session) {
	r.mu.Lock()
	r.session = s
	r.mu.Unlock()
}

func (r *room) current() *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session
}

func (r *room) policy() *policy.Room { return r.guard.store.Room(r.name) }

func (r *room) report(e events.Event) {
	e.Room = r.name
	r.guard.sink.Add(e)
}

func (r *room) reap() {
	if s := r.current(); s != nil {
		s.proxy.Flows.Reap()
	}
}

// publish carries connections to a published port, in whichever session of the
// room is current.
func (r *room) publish(ctx context.Context, l *net.TCPListener, p firewall.Publish) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	accept(ctx, l, r.places, func(ctx context.Context, c *net.TCPConn) {
		s := r.current()
		if s == nil {
			proxy.Reset(c)
			return
		}
		out, to, err := inbound.Dial(ctx, func(port int) (*os.File, error) { return s.client.DialSocket(port) }, p.Target)
		if err != nil {
			proxy.Reset(c)
			return
		}
		s.proxy.Join(ctx, c, out, to)
	}, r.panicked(events.Inbound))
}
