package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/guard/tlshello"
)

// TLS carries a connection to port 443: by the server name of its ClientHello, to
// the guard's own answer for that name (B24), or by an allowed range.
func (r *Room) TLS(ctx context.Context, c *net.TCPConn) {
	orig, err := r.original(c)
	if err != nil {
		Reset(c)
		return
	}
	if !r.mustRead(r.Policy(), orig) {
		r.byAddress(ctx, events.TLS, c, orig)
		return
	}
	r.readTLS(ctx, events.TLS, c, c, orig)
}

// readTLS is TLS for a connection whose name must be known; it is read from in.
func (r *Room) readTLS(ctx context.Context, kind events.Kind, c *net.TCPConn, in io.Reader, orig netip.AddrPort) {
	large := &place{large: r.Large}
	defer large.free()
	buf := helloBuffers.Get().(*[]byte)
	name, head, err := readHello(c, in, large, *buf)
	r.carryTLS(ctx, kind, c, orig, name, head, err, large)
	helloBuffers.Put(buf)
}

// readHello reads a ClientHello, and what in has buffered after it.
func readHello(c *net.TCPConn, in io.Reader, large *place, buf []byte) (firewall.Name, []byte, error) {
	_ = c.SetReadDeadline(time.Now().Add(helloTimeout))
	name, head, err := tlshello.Read(&metered{r: in, p: large}, buf)
	_ = c.SetReadDeadline(time.Time{})
	if br, ok := in.(*bufio.Reader); ok {
		more, _ := br.Peek(br.Buffered())
		head = append(head, more...)
		_, _ = br.Discard(len(more))
	}
	return name, head, err
}

// carryTLS decides by the results of readHello.
func (r *Room) carryTLS(ctx context.Context, kind events.Kind, c *net.TCPConn, orig netip.AddrPort, name firewall.Name, head []byte, err error, large *place) {
	p := r.Policy()
	ech := errors.Is(err, tlshello.ErrECH) && !name.IsZero()
	if err != nil && !ech {
		if mayLackName(p, err, orig.Port()) {
			if x := r.route(p, orig, authority{addr: orig.Addr(), port: orig.Port()}); x.Allowed {
				r.carryTo(ctx, kind, c, p, x, orig, head, large)
				return
			}
		}
		r.badHello(kind, c, err, name, orig)
		return
	}
	x := r.route(p, orig, authority{name: name, port: orig.Port()})
	if ech {
		x.byOuterName(p, name)
		if x.Allowed {
			r.noteECH(kind, x.Decision, name, orig)
		}
	}
	if !x.Allowed {
		r.deny(kind, x.Decision, name.String(), orig)
		alert(c, alertOf(x.Decision))
		return
	}
	r.carryTo(ctx, kind, c, p, x, orig, head, large)
}

// mayLackName reports whether a connection to a port may be decided by its address,
// or mode open, although readHello failed: because the hello has no name, or
// because it isn't TLS and no name is denied. Servers skip what precedes a hello
// (alerts, invalid versions, a preface), and could then see a name that was never
// decided about.
func mayLackName(p *policy.Room, err error, port uint16) bool {
	return errors.Is(err, tlshello.ErrNoName) || errors.Is(err, tlshello.ErrNotTLS) && !hasClosedNames(p, port)
}

// carryTo dials a decided destination and splices; head is what was already read
// of the connection, large its place.
func (r *Room) carryTo(ctx context.Context, kind events.Kind, c *net.TCPConn, p *policy.Room, x route, orig netip.AddrPort, head []byte, large *place) {
	w, err := r.dialTo(ctx, kind, c, p, x, orig)
	switch {
	case err == nil:
		r.start(c, w, head, large)
	case errors.As(err, new(*egress.NeverError)) && !x.to.addr.IsValid():
		alert(c, alertAccessDenied)
	default:
		Reset(c)
	}
}

// helloBuffers has buffers of 2 KiB, enough for most hellos; larger ones grow.
var helloBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

// Alerts of RFC 8446 §6.
const (
	alertHandshakeFailure = 40
	alertAccessDenied     = 49
	alertDecodeError      = 50
	alertInternalError    = 80
	alertUnrecognizedName = 112
)

// badHello refuses a connection whose ClientHello yields no name. The reason is the
// address if no line opens it; what a line with the address lets through suggests it.
func (r *Room) badHello(kind events.Kind, c *net.TCPConn, err error, name firewall.Name, orig netip.AddrPort) {
	reason, code := events.ReasonMalformed, byte(alertDecodeError)
	switch {
	case errors.Is(err, tlshello.ErrNoName):
		reason, code = events.ReasonNoSNI, alertUnrecognizedName
	case errors.Is(err, tlshello.ErrECH): // without an outer name
		reason, code = events.ReasonECH, alertHandshakeFailure
	case errors.Is(err, tlshello.ErrNotTLS):
		reason, code = events.ReasonNotTLS, 0
	case errors.Is(err, errBusy):
		reason, code = events.ReasonBusy, alertInternalError
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, new(*net.OpError)):
		// The client disconnected or sent nothing: there is nothing to deny.
		Reset(c)
		return
	}
	d, at := firewall.Decision{Reason: reason}, orig.Addr()
	if p := r.Policy(); at.IsValid() {
		byAddr := p.Matcher.Addr(at, orig.Port())
		switch {
		case !firewall.Classify(at).Openable():
			d = byAddr
		case mayLackName(p, err, orig.Port()):
			d.Suggest = byAddr.Suggest
		}
	}
	r.deny(kind, d, name.String(), orig)
	if code == 0 {
		Reset(c)
		return
	}
	alert(c, code)
}

// alert ends a handshake by a fatal alert, so that tools say "access denied"
// instead of "connection reset".
func alert(c *net.TCPConn, code byte) {
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte{21, 3, 3, 0, 2, 2, code}); err != nil {
		Reset(c)
		return
	}
	// Closing with unread bytes would send RST, which may overtake the alert.
	_ = c.CloseWrite()
	_, _ = io.Copy(io.Discard, io.LimitReader(c, tlshello.MaxBytes))
	_ = c.Close()
}
