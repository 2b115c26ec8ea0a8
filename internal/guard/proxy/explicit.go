package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/guard/tlshello"
)

// Explicit is the HTTP proxy for tools that use HTTP_PROXY. It decides as for
// transparent connections, and explains a refusal in the response.
func (r *Room) Explicit(ctx context.Context, c *net.TCPConn) {
	s := &httpSession{room: r, ctx: ctx, c: c, kind: events.Proxy, explicit: true}
	s.run()
}

// connect serves a CONNECT request. Afterwards the connection is a tunnel, or is
// closed.
func (s *httpSession) connect(req *http.Request) error {
	// Requests inside a tunnel use another upstream with the same s.requests.
	s.drop()
	to, err := parseAuthority(req.RequestURI, 0)
	if err == nil && to.port == 0 {
		err = bad("CONNECT needs a port")
	}
	if err != nil {
		s.refuse(err)
		return nil
	}
	p := s.room.Policy()
	x := s.room.route(p, netip.AddrPort{}, to)
	at := netip.AddrPortFrom(to.addr, to.port)
	if !x.Allowed {
		s.room.deny(events.Proxy, x.Decision, to.host(), at)
		return s.room.denied(s.c, to, x.Decision, false)
	}
	if to.addr.IsValid() && (to.port == 80 || to.port == 443) && s.room.mustRead(p, at) {
		return s.connectAndRead(p, x, to)
	}
	// The upstream is dialled before the response, so that a failure can be
	// explained. It is the host that was requested and allowed.
	up, err := s.room.dialTo(s.ctx, events.Proxy, s.c, p, x, netip.AddrPort{})
	if err != nil {
		return s.unreachable(to, err, false)
	}
	defer up.end()
	if err := s.established(); err != nil {
		return err
	}
	named := !to.addr.IsValid()
	switch {
	case named && to.port == 443:
		return s.tunnelTLS(up, to)
	case named && to.port == 80:
		s.requestsInside(&httpSession{orig: at, only: &to, first: up})
		return nil
	}
	return s.tunnel(up, nil)
}

func (s *httpSession) established() error {
	_, err := io.WriteString(s.c, "HTTP/1.1 200 Connection established\r\n\r\n")
	return err
}

// connectAndRead serves a CONNECT to port 80 or 443 of an address where names are
// denied: the host name is read before anything is dialled, as for a redirected
// connection.
func (s *httpSession) connectAndRead(p *policy.Room, x route, to authority) error {
	at := netip.AddrPortFrom(to.addr, to.port)
	if d := s.room.mayDial(p, x); !d.Allowed {
		never := &egress.NeverError{Addr: to.addr, Decision: d}
		s.room.never(events.Proxy, never, "", to.port)
		return s.unreachable(to, never, false)
	}
	if err := s.established(); err != nil {
		return err
	}
	if to.port == 80 {
		s.requestsInside(&httpSession{orig: at})
		return nil
	}
	s.large.free() // of the CONNECT request
	s.room.readTLS(s.ctx, events.Proxy, s.c, s.requests.br, at)
	return nil
}

// requestsInside serves the requests inside a tunnel.
func (s *httpSession) requestsInside(in *httpSession) {
	in.room, in.ctx, in.c, in.kind, in.requests = s.room, s.ctx, s.c, events.Proxy, s.requests
	s.large.free() // of the CONNECT request
	in.run()
}

// tunnelTLS carries a tunnel if its ClientHello has the tunnel's own name, and
// nothing else (egress.md N4).
func (s *httpSession) tunnelTLS(up *way, to authority) error {
	s.large.free() // of the CONNECT request
	defer s.large.free()
	buf := helloBuffers.Get().(*[]byte)
	name, head, err := readHello(s.c, s.requests.br, &s.large, *buf)
	err = s.carryTunnel(up, to, name, head, err)
	helloBuffers.Put(buf)
	return err
}

// carryTunnel decides by the results of readHello.
func (s *httpSession) carryTunnel(up *way, to authority, name firewall.Name, head []byte, err error) error {
	at := netip.AddrPortFrom(netip.Addr{}, to.port)
	p := s.room.Policy()
	if p.Mode == firewall.Open && mayLackName(p, err, to.port) {
		return s.tunnel(up, head)
	}
	ech := errors.Is(err, tlshello.ErrECH) && !name.IsZero()
	if err != nil && !ech {
		s.room.badHello(events.Proxy, s.c, err, to.name, at)
		return nil
	}
	x := route{Decision: up.decide(p), to: to, again: up.decide}
	if name != to.name {
		x.Decision = firewall.Decision{Reason: events.ReasonOtherName}
	} else if ech {
		x.byOuterName(p, name)
		up.decide = x.again
		if x.Allowed {
			s.room.noteECH(events.Proxy, x.Decision, name, at)
		}
	}
	if !x.Allowed {
		s.room.deny(events.Proxy, x.Decision, name.String(), at)
		alert(s.c, alertOf(x.Decision))
		return nil
	}
	return s.tunnel(up, head)
}

// tunnel sends what was already read and joins the two connections.
func (s *httpSession) tunnel(up *way, head []byte) error {
	if br := s.requests.br; br.Buffered() > 0 {
		more, err := br.Peek(br.Buffered())
		if err != nil {
			return err
		}
		head = append(append([]byte{}, head...), more...)
		_, _ = br.Discard(len(more))
	}
	s.room.start(s.c, up, head, &s.large)
	return nil
}
