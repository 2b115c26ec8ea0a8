package proxy

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// HTTP carries a connection to port 80: each request by its own Host (B24), or the
// whole connection by an allowed range.
func (r *Room) HTTP(ctx context.Context, c *net.TCPConn) {
	orig, err := r.original(c)
	if err != nil {
		Reset(c)
		return
	}
	if !r.mustRead(r.Policy(), orig) {
		r.byAddress(ctx, events.HTTP, c, orig)
		return
	}
	s := &httpSession{room: r, ctx: ctx, c: c, kind: events.HTTP, orig: orig}
	s.run()
}

// httpSession serves the requests of one client connection, in order. One goroutine
// owns all of it, except requests while a body is sent: see [requestSide].
type httpSession struct {
	room *Room
	ctx  context.Context
	c    *net.TCPConn
	kind events.Kind
	orig netip.AddrPort // dialled by the client; zero for the explicit proxy
	// only, if set, is the name of the CONNECT tunnel around the requests.
	only *authority
	// first is already dialled for it.
	first *way
	// explicit says that requests are in absolute-form or CONNECT.
	explicit bool
	// at, if set, is the endpoint that requests are to.
	at *endpoint

	requests *requestSide
	up       *way
	ubr      *bufio.Reader // reads from up
	upTo     upstream
	flow     *Flow
	// flowUp is up for other goroutines, protected by the flow's lock.
	flowUp *way

	large, largeUp place // of a request's head and of a response's
}

// upstream is the host of requests for an upstream connection, what was dialled, and the
// credential's value that it has had ([leases.Held.ID]; 0: none).
type upstream struct {
	host, to authority
	value    uint64
}

// run serves requests until one ends the connection.
func (s *httpSession) run() {
	inTunnel := s.requests != nil
	if !inTunnel {
		s.requests = newRequestSide(s.c)
	}
	defer func() {
		if s.up != nil {
			s.up.end()
		}
	}()
	s.flow = s.room.Flows.Add(s.c, nil, s.stillAllowed)
	if s.flow == nil {
		return
	}
	ended := false
	defer func() { s.room.Flows.end(s.flow, ended) }()
	if s.first != nil {
		s.use(s.first, upstream{host: *s.only, to: *s.only})
	}
	s.large.large, s.largeUp.large = s.room.Large, s.room.Large
	defer s.large.free()
	defer s.largeUp.free()
	s.serveAll()
	s.drop()
	if !inTunnel {
		putReader(s.requests.br)
	}
	ended = true
}

// serveAll serves the requests one by one.
func (s *httpSession) serveAll() {
	wait := helloTimeout
	for {
		runtime.Gosched() // pipelined requests alternate with those of other connections
		br := s.requests.br
		_ = s.c.SetReadDeadline(time.Now().Add(wait))
		if _, err := br.Peek(1); err != nil {
			s.c.Close()
			return
		}
		_ = s.c.SetReadDeadline(time.Now().Add(helloTimeout))
		req, err := readHead(br, s.large.take)
		_ = s.c.SetReadDeadline(time.Time{})
		if err != nil {
			s.refuse(err)
			return
		}
		keep, err := s.serve(req)
		s.large.free()
		s.largeUp.free()
		if err != nil {
			Reset(s.c)
			return
		}
		if !keep {
			s.finish()
			return
		}
		wait = idleTimeout
	}
}

// finish closes the client's side such that it can read everything that was sent.
func (s *httpSession) finish() {
	_ = s.c.CloseWrite()
	_ = s.c.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.Copy(io.Discard, io.LimitReader(s.c, 1<<20))
	_ = s.c.Close()
}

// refuse answers a request that can't be carried, and reports it once.
func (s *httpSession) refuse(err error) {
	x := badRequest{why: err.Error(), reason: events.ReasonMalformed}
	status := http.StatusBadRequest
	var b *badRequest
	switch {
	case errors.As(err, &b):
		x.to, x.reason = b.to, cmp.Or(b.reason, x.reason)
	case errors.Is(err, errBusy):
		status, x.reason = http.StatusServiceUnavailable, events.ReasonBusy
	case errors.Is(err, errHeadTooLarge):
		status = http.StatusRequestHeaderFieldsTooLarge
	default:
		Reset(s.c)
		return
	}
	s.report(firewall.Decision{Reason: x.reason}, x.to)
	_ = answer(s.c, status, nil, "workshop: "+x.why+"\n", false)
	s.finish()
}

// report writes the event of a refused request, with the host if known.
func (s *httpSession) report(d firewall.Decision, to authority) {
	at, name := s.orig, ""
	if to.port != 0 {
		name = to.host()
		if !at.IsValid() {
			at = netip.AddrPortFrom(to.addr, to.port)
		}
	}
	s.room.deny(s.kind, d, name, at)
}

func (s *httpSession) stillAllowed(p *policy.Room) bool {
	// Without one, no request is in flight, and the next one is checked.
	return s.flowUp == nil || s.flowUp.still(p)
}

// serve decides about one request and carries it.
func (s *httpSession) serve(req *http.Request) (keep bool, err error) {
	if s.at != nil {
		return s.serveEndpoint(req)
	}
	if s.explicit && req.Method == http.MethodConnect {
		return false, s.connect(req)
	}
	if s.asksPolicy(req) {
		return s.answerPolicy(req)
	}
	to, err := s.target(req)
	if err != nil {
		s.refuse(err)
		return false, nil
	}
	p := s.room.Policy()
	x := s.room.route(p, s.orig, to)
	if d := x.Decision; !d.Allowed {
		s.report(d, to)
		// The body isn't read, so a connection with one can't be reused.
		keep := bodyless(req) && !req.Close
		return keep, s.room.denied(s.c, to, d, keep)
	}
	if err := checkUpgrade(req); err != nil {
		s.refuse(err)
		return false, nil
	}
	if last, err := lastHop(req); err != nil {
		s.refuse(err)
		return false, nil
	} else if last {
		s.report(firewall.Decision{Reason: events.ReasonLastHop}, to)
		return false, answer(s.c, http.StatusMethodNotAllowed, map[string]string{"Allow": "GET, HEAD, POST, PUT, PATCH, DELETE"}, "workshop: Max-Forwards is 0: answered by the guard\n", false)
	}
	if err := s.dial(p, x, to); err != nil {
		keep := bodyless(req) && !req.Close
		return keep, s.unreachable(to, err, keep)
	}
	return s.exchange(req)
}

// target returns the destination of a request.
func (s *httpSession) target(req *http.Request) (authority, error) {
	if req.Method == http.MethodConnect {
		return authority{}, bad("CONNECT is served by the explicit proxy, 127.0.0.1:%d", firewall.PortProxy)
	}
	port := uint16(80)
	if s.orig.IsValid() {
		port = s.orig.Port()
	}
	if s.explicit && !req.URL.IsAbs() {
		return authority{}, bad("this is an HTTP proxy: the request must name its host (http_proxy=http://127.0.0.1:%d)", firewall.PortProxy)
	}
	if req.URL.IsAbs() && req.URL.Scheme != "http" {
		return authority{}, bad("scheme %q is not supported here; use CONNECT for https", req.URL.Scheme)
	}
	if req.URL.User != nil {
		return authority{}, bad("user info in the request's URL")
	}
	// http.ReadRequest puts the host of an absolute-form URL into req.Host
	// and drops the header (as RFC 9112 §3.2.2 requires); a transparent connection
	// has no reason for absolute-form with another host.
	to, err := parseAuthority(strings.Clone(req.Host), port) // clone: don't retain the whole line
	if err != nil {
		return to, err
	}
	switch {
	case !s.explicit && to.port != port:
		return to, bad("Host names port %d, the connection is to %d", to.port, port)
	case s.only != nil && (to.host() != s.only.host() || to.port != s.only.port):
		return to, &badRequest{fmt.Sprintf("the tunnel is to %s, the request to %s", s.only.host(), to.host()), events.ReasonOtherName, to}
	}
	return to, nil
}

// unreachable answers for an allowed host that can't be reached.
func (s *httpSession) unreachable(to authority, err error, keep bool) error {
	if never := new(egress.NeverError); errors.As(err, &never) {
		return s.room.denied(s.c, to, never.Decision, keep)
	}
	return answer(s.c, http.StatusBadGateway, nil, fmt.Sprintf("workshop: %s can't be reached: %s\n", to.host(), whyUnreachable(err)), keep)
}

// whyUnreachable describes an error in fixed words, like [egress.Words].
func whyUnreachable(err error) string {
	var upstream *egress.ProxyError
	var certificate *certificateError
	switch {
	case errors.As(err, &certificate):
		return certificate.why
	case errors.Is(err, errBusy):
		return errBusy.Error()
	case errors.As(err, &upstream):
		return "the upstream proxy " + upstream.What
	case errors.Is(err, errNoAddress):
		return "the name has no address"
	case errors.Is(err, errLookUp):
		return "the name can't be looked up"
	}
	return egress.Words(err)
}

// dial connects to a request's destination, unless the last request had the same.
func (s *httpSession) dial(p *policy.Room, x route, host authority) error {
	to := upstream{host, x.to, s.at.value()}
	if s.up != nil && s.upTo == to && s.ubr.Buffered() == 0 && quiet(s.up.conn) {
		if b := s.up.budget; b == nil || b.wait() == 0 {
			s.again(x)
			return nil
		}
	}
	s.drop()
	up, err := s.room.dialTo(s.ctx, s.kind, s.c, p, x, s.orig)
	if err != nil {
		return err
	}
	if err := s.at.secure(s.ctx, up, host.host()); err != nil {
		up.end()
		return err
	}
	s.use(up, to)
	return nil
}

// again makes a kept upstream one for the next request of an endpoint: whether it is still
// allowed, the request says.
func (s *httpSession) again(x route) {
	if s.at == nil {
		return
	}
	s.room.Flows.set(s.flow, s.up.conn, func() { s.up.decide = x.again })
	if !s.up.still(s.room.Policy()) { // it changed since the decision
		s.flow.reset()
	}
}

// use makes up the upstream of the following requests.
func (s *httpSession) use(up *way, to upstream) {
	s.up, s.ubr, s.requests.ubw = up, readers.Get().(*bufio.Reader), writers.Get().(*bufio.Writer)
	s.requests.ubw.Reset(up.stream())
	s.requests.size = up.size
	s.room.Flows.set(s.flow, up.conn, func() { s.upTo, s.flowUp = to, up })
	if !up.still(s.room.Policy()) { // it changed since the decision
		s.flow.reset()
	}
}

// dialTo dials a decided destination. orig is what the worker dialled.
func (r *Room) dialTo(ctx context.Context, kind events.Kind, c *net.TCPConn, p *policy.Room, x route, orig netip.AddrPort) (*way, error) {
	a := dialRequest{kind: kind, in: c, decide: x.again}
	if x.to.addr.IsValid() {
		a.name = x.name
		return r.open(ctx, a, p, x.Decision, []netip.Addr{x.to.addr}, x.to.port)
	}
	return r.dialName(ctx, a, p, x.Decision, x.to.name, orig, x.to.port)
}

// drop closes the upstream connection.
func (s *httpSession) drop() {
	if s.up == nil {
		return
	}
	s.room.Flows.set(s.flow, nil, func() { s.upTo, s.flowUp = upstream{}, nil })
	s.up.end()
	if s.up.tls != nil && s.up.tls.wide != nil {
		putReader(s.up.tls.wide)
	}
	putReader(s.ubr)
	putWriter(s.requests.ubw)
	s.up, s.ubr, s.requests.ubw = nil, nil, nil
}

// quiet reports whether a kept connection can be reused: the peer has neither
// closed it nor sent anything unsolicited.
func quiet(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	_ = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ok = err == unix.EAGAIN
	})
	return ok
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
