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
		return denied(s.c, to, d, false)
	}
	// The upstream is dialled before the answer, so that a failure has an
	// explanation. It is the host that was asked for and allowed.
	up, err := s.room.dialTo(s.ctx, events.Proxy, p, d, to, netip.AddrPort{})
	if err != nil {
		return s.unreachable(to, err, false)
	}
	defer up.Close()
	if _, err := io.WriteString(s.c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return err
	}
	named := !to.addr.IsValid()
	switch {
	case named && to.port == 443:
		return s.tunnelTLS(up, to)
	case named && to.port == 80:
		up.Close()
		in := &httpSession{room: s.room, ctx: s.ctx, c: s.c, kind: events.Proxy, orig: netip.AddrPortFrom(netip.Addr{}, 80), only: &to, cr: s.cr, br: s.br}
		s.large.free()
		in.run()
		return nil
	}
	return s.tunnel(up, to, nil)
}

// tunnelTLS lets a ClientHello for the tunnel's own name through, and nothing
// else (egress.md N4).
func (s *httpSession) tunnelTLS(up *net.TCPConn, to authority) error {
	buf := helloBuffers.Get().(*[]byte)
	defer helloBuffers.Put(buf)
	_ = s.c.SetReadDeadline(time.Now().Add(helloTimeout))
	s.large.free() // of the CONNECT request
	defer s.large.free()
	name, head, err := hello.Read(&metered{r: s.br, p: &s.large}, *buf)
	_ = s.c.SetReadDeadline(time.Time{})
	at := netip.AddrPortFrom(netip.Addr{}, to.port)
	if s.room.Policy().Mode == firewall.Open && (errors.Is(err, hello.ErrNotTLS) || errors.Is(err, hello.ErrNoName)) {
		return s.tunnel(up, to, head)
	}
	if err != nil {
		s.room.badHello(s.c, err, to.name, at)
		return nil
	}
	if name != to.name {
		s.room.deny(events.Proxy, firewall.Decision{Reason: events.ReasonOtherName}, name.String(), at)
		alert(s.c, alertAccessDenied)
		return nil
	}
	return s.tunnel(up, to, head)
}

// tunnel sends what was read already and joins the two connections.
func (s *httpSession) tunnel(up *net.TCPConn, to authority, head []byte) error {
	if n := s.br.Buffered(); n > 0 {
		more, err := s.br.Peek(n)
		if err != nil {
			return err
		}
		head = append(append([]byte{}, head...), more...)
		_, _ = s.br.Discard(n)
	}
	if len(head) > 0 {
		if _, err := up.Write(head); err != nil {
			return err
		}
	}
	s.large.free()
	s.room.splice(s.c, up, func(p *policy.Room) bool { return decide(p, to).Allowed })
	return nil
}
