package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/hello"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// Explicit is the HTTP proxy for tools that use HTTP_PROXY: the same decisions
// as for transparent connections, with an explanation in the answer.
func (r *Room) Explicit(ctx context.Context, c *net.TCPConn) {
	s := &httpSession{room: r, ctx: ctx, c: c, kind: events.Proxy, explicit: true}
	s.run()
}

// connect serves a CONNECT request; the connection is a tunnel afterwards, or
// ends.
func (s *httpSession) connect(req *http.Request) error {
	to, err := parseAuthority(req.RequestURI, 0)
	if err == nil && to.port == 0 {
		err = bad("CONNECT needs a port")
	}
	if err != nil {
		s.refuse(err)
		return nil
	}
	p := s.room.Policy()
	d := s.room.decide(p, to)
	if !d.Allowed {
		s.room.deny(events.Proxy, d, to.host(), netip.AddrPortFrom(to.addr, to.port))
		return s.room.denied(s.c, p, to, d, false)
	}
	// The upstream is dialled before the answer, so that a failure has an
	// explanation. It is the host that was asked for and allowed.
	up, err := s.room.dialTo(s.ctx, events.Proxy, s.c, p, d, to, netip.AddrPort{})
	if err != nil {
		return s.unreachable(p, to, err, false)
	}
	defer up.end()
	if _, err := io.WriteString(s.c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return err
	}
	named := !to.addr.IsValid()
	switch {
	case named && to.port == 443:
		return s.tunnelTLS(up, d, to)
	case named && to.port == 80:
		in := &httpSession{
			room: s.room, ctx: s.ctx, c: s.c, kind: events.Proxy, orig: netip.AddrPortFrom(netip.Addr{}, 80), only: &to,
			cr: s.cr, br: s.br, first: up,
		}
		s.large.free()
		in.run()
		return nil
	}
	return s.tunnel(up, nil)
}

// tunnelTLS lets a ClientHello for the tunnel's own name through, and nothing
// else (egress.md N4).
func (s *httpSession) tunnelTLS(up *way, d firewall.Decision, to authority) error {
	buf := helloBuffers.Get().(*[]byte)
	defer helloBuffers.Put(buf)
	_ = s.c.SetReadDeadline(time.Now().Add(helloTimeout))
	s.large.free() // of the CONNECT request
	defer s.large.free()
	name, head, err := hello.Read(&metered{r: s.br, p: &s.large}, *buf)
	_ = s.c.SetReadDeadline(time.Time{})
	at := netip.AddrPortFrom(netip.Addr{}, to.port)
	p := s.room.Policy()
	if p.Mode == firewall.Open && (errors.Is(err, hello.ErrNotTLS) || errors.Is(err, hello.ErrNoName)) {
		return s.tunnel(up, head)
	}
	ech := errors.Is(err, hello.ErrECH) && !name.IsZero()
	if err != nil && !ech {
		s.room.badHello(s.c, err, to.name, at)
		return nil
	}
	if name != to.name {
		d = firewall.Decision{Reason: events.ReasonOtherName}
	} else if ech {
		if d = byOuterName(p, d, name); d.Allowed {
			s.room.noteECH(events.Proxy, d, name, at)
			allowed := up.decide
			up.decide = func(p *policy.Room) firewall.Decision { return byOuterName(p, allowed(p), name) }
		}
	}
	if !d.Allowed {
		s.room.deny(events.Proxy, d, name.String(), at)
		alert(s.c, alertOf(d))
		return nil
	}
	return s.tunnel(up, head)
}

// tunnel sends what was read already and joins the two connections.
func (s *httpSession) tunnel(up *way, head []byte) error {
	if n := s.br.Buffered(); n > 0 {
		more, err := s.br.Peek(n)
		if err != nil {
			return err
		}
		head = append(append([]byte{}, head...), more...)
		_, _ = s.br.Discard(n)
	}
	s.room.start(s.c, up, head, &s.large)
	return nil
}
