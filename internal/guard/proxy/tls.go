package proxy

import (
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
	"github.com/llmdo/workshop/internal/guard/hello"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// TLS carries a connection to 443: by the one server name of its ClientHello,
// to the guard's own answer for it (B24), or by an allowed range.
func (r *Room) TLS(ctx context.Context, c *net.TCPConn) {
	orig, err := r.original(c)
	if err != nil {
		Reset(c)
		return
	}
	p := r.Policy()
	byAddr, _ := r.addrDecision(p, orig, false)
	if byAddr.Allowed && !hasDenyNames(p) {
		// The address decides, and nothing has to be read: the server may be
		// the one that speaks first.
		r.byAddress(ctx, events.TLS, c, orig, nil, nil)
		return
	}
	buf := helloBuffers.Get().(*[]byte)
	defer helloBuffers.Put(buf)
	_ = c.SetReadDeadline(time.Now().Add(helloTimeout))
	large := &place{large: r.Large}
	defer large.free()
	name, head, err := hello.Read(&metered{r: c, p: large}, *buf)
	_ = c.SetReadDeadline(time.Time{})
	ech := errors.Is(err, hello.ErrECH) && !name.IsZero()
	if err != nil && !ech {
		if byAddr.Allowed && (errors.Is(err, hello.ErrNoName) || errors.Is(err, hello.ErrNotTLS)) {
			r.byAddress(ctx, events.TLS, c, orig, head, large)
			return
		}
		r.badHello(c, err, name, orig)
		return
	}
	d := r.decide(p, authority{name: name, port: orig.Port()})
	byRange := byAddr.Allowed && (d.Allowed || d.Reason != firewall.ReasonDenied)
	if byRange {
		d = byAddr
	}
	if ech {
		if d = byOuterName(p, d, name); d.Allowed {
			r.noteECH(events.TLS, d, name, orig)
		}
	}
	switch {
	case !d.Allowed:
		r.deny(events.TLS, d, name.String(), orig)
		alert(c, alertOf(d))
	case byRange:
		r.byAddress(ctx, events.TLS, c, orig, head, large)
	default:
		r.byName(ctx, events.TLS, c, p, d, name, orig, head, large, ech)
	}
}

// byName dials the guard's own answer for a name and splices. head is what was
// read of the connection already, large its place.
func (r *Room) byName(ctx context.Context, kind events.Kind, c *net.TCPConn, p *policy.Room, d firewall.Decision, name firewall.Name, orig netip.AddrPort, head []byte, large *place, ech bool) {
	still := func(p *policy.Room) firewall.Decision {
		d := p.Matcher.Name(name, orig.Port())
		if ech {
			d = byOuterName(p, d, name)
		}
		return d
	}
	w, err := r.dialName(ctx, asked{kind: kind, in: c, decide: still}, p, d, name, orig, orig.Port())
	if errors.As(err, new(*egress.NeverError)) {
		alert(c, alertAccessDenied)
		return
	}
	if err != nil {
		Reset(c)
		return
	}
	r.start(c, w, head, large)
}

// hasDenyNames tells whether a name must be known although the address is
// allowed.
func hasDenyNames(p *policy.Room) bool {
	for i := range p.Deny {
		if !p.Deny[i].Host.IsZero() {
			return true
		}
	}
	return false
}

// helloBuffers: a hello fits into 2 KiB mostly; larger ones grow their own.
var helloBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

// Alerts of RFC 8446 §6.
const (
	alertHandshakeFailure = 40
	alertAccessDenied     = 49
	alertDecodeError      = 50
	alertInternalError    = 80
	alertUnrecognizedName = 112
)

// badHello refuses a connection whose ClientHello gives no name.
func (r *Room) badHello(c *net.TCPConn, err error, name firewall.Name, orig netip.AddrPort) {
	reason, code := events.ReasonMalformed, byte(alertDecodeError)
	switch {
	case errors.Is(err, hello.ErrNoName):
		reason, code = events.ReasonNoSNI, alertUnrecognizedName
	case errors.Is(err, hello.ErrECH): // without an outer name
		reason, code = events.ReasonECH, alertHandshakeFailure
	case errors.Is(err, hello.ErrNotTLS):
		reason, code = events.ReasonNotTLS, 0
	case errors.Is(err, errBusy):
		reason, code = events.ReasonBusy, alertInternalError
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, new(*net.OpError)):
		// The client went away or said nothing: there is nothing to deny.
		Reset(c)
		return
	}
	r.deny(events.TLS, firewall.Decision{Reason: reason}, name.String(), orig)
	if code == 0 {
		Reset(c)
		return
	}
	alert(c, code)
}

// alert ends a handshake in the way that tools explain best: a fatal alert, so
// that they say "access denied" instead of "connection reset".
func alert(c *net.TCPConn, code byte) {
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte{21, 3, 3, 0, 2, 2, code}); err != nil {
		Reset(c)
		return
	}
	// Closing with unread bytes would send RST, which may overtake the alert.
	_ = c.CloseWrite()
	_, _ = io.Copy(io.Discard, io.LimitReader(c, hello.MaxBytes))
	_ = c.Close()
}
