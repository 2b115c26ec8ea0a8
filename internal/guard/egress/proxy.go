package egress

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/leases"
)

// Proxy is the upstream HTTP proxy (network.proxy). The guard sends it CONNECT with
// the address that it resolved and checked, never with a name, so that the proxy
// can't resolve differently.
type Proxy struct {
	upstream *Upstream
	trust    Trust
	// Host is an address or a name, Port its port.
	Host string
	Port uint16
	name string // HOST:PORT
	auth string // value of the Proxy-Authorization header
	// Lease takes the value that is leased for the proxy; a nil one: there is none now, and
	// nothing is connected to. A nil Lease: the proxy has no credential.
	Lease   func() *leases.Held
	addr    atomic.Pointer[netip.AddrPort]
	refused atomic.Bool // the last address; false: none was found
}

// NewProxy parses the URL of the proxy, http://[user:password@]host:port. If its
// host is a name, it carries nothing until [Proxy.Fix]. An address that a
// repository must not name is an error.
func NewProxy(upstream *Upstream, s string, trust Trust) (*Proxy, error) {
	x, err := firewall.ParseProxy(s)
	if err != nil {
		return nil, err
	}
	p := &Proxy{upstream: upstream, trust: trust, Host: x.Host, Port: x.Port, name: x.String()}
	if x.User != nil {
		password, _ := x.User.Password()
		p.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(x.User.Username()+":"+password))
	}
	if a, err := netip.ParseAddr(p.Host); err == nil {
		return p, p.Fix(a)
	}
	return p, nil
}

// Fix sets the proxy's address once and for all. It refuses an address that a
// repository must not name; the name may resolve to another one later.
func (p *Proxy) Fix(a netip.Addr) error {
	at := netip.AddrPortFrom(a.Unmap(), p.Port)
	if err := p.upstream.Add(at, p.trust); err != nil {
		p.refused.Store(true)
		return fmt.Errorf("upstream proxy: %s is closed to a repository: %w", p.Host, err)
	}
	p.addr.CompareAndSwap(nil, &at)
	return nil
}

// Fixed reports whether the proxy's address is known.
func (p *Proxy) Fixed() bool { return p.addr.Load() != nil }

// String returns HOST:PORT, without credentials.
func (p *Proxy) String() string { return p.name }

// ProxyError is a failure of the upstream proxy itself, not of what is dialled
// through it.
type ProxyError struct {
	Proxy string // HOST:PORT
	// What it did, in fixed words without an address: "can't be resolved".
	What string
}

func (e *ProxyError) Error() string { return "the upstream proxy " + e.Proxy + " " + e.What }

func (p *Proxy) failed(what string) error { return &ProxyError{p.name, what} }

// maxProxyHead bounds the proxy's answer to CONNECT.
const maxProxyHead = 16 << 10

// connect returns a connection through the proxy, and with a credential what reports whether
// that was revoked since.
func (p *Proxy) connect(ctx context.Context, to netip.AddrPort) (c *net.TCPConn, revoked func() bool, err error) {
	at := p.addr.Load()
	switch {
	case at == nil && p.refused.Load():
		return nil, nil, p.failed(closedProxy)
	case at == nil:
		return nil, nil, p.failed("can't be resolved")
	}
	var held *leases.Held
	if p.Lease != nil {
		if held = p.Lease(); held == nil {
			return nil, nil, p.failed(noCredential)
		}
		defer held.Release()
		revoked = held.Revoked
	}
	nc, err := p.upstream.Dial(ctx, "tcp", *at)
	switch {
	case errors.Is(err, errClosed):
		return nil, nil, p.failed(closedProxy)
	case err != nil:
		return nil, nil, p.failed("can't be connected to: " + Words(err))
	}
	c = nc.(*net.TCPConn)
	if what := p.handshake(ctx, c, to, held); what != "" {
		c.Close()
		return nil, nil, p.failed(what)
	}
	return c, revoked, nil
}

// noCredential is a proxy whose credential isn't leased: it gets no packet.
const noCredential = "has no credential now: the person can run `workshop up`"

// closedProxy is a proxy that a repository must not name.
const closedProxy = "is at an address that only your environment or --env-file may name"

// handshake returns what the proxy did instead of connecting; "" if it connected. held is
// the proxy's credential; nil: none.
func (p *Proxy) handshake(ctx context.Context, c *net.TCPConn, to netip.AddrPort, held *leases.Held) string {
	if t, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(t)
	}
	var req bytes.Buffer
	req.Grow(lease.MaxValue + 256) // grown later, it would leave a copy behind
	defer func() { clear(req.Bytes()) }()
	req.WriteString("CONNECT " + to.String() + " HTTP/1.1\r\nHost: " + to.String() + "\r\n")
	switch {
	case held != nil:
		if held.Revoked() { // while it was connected to
			return noCredential
		}
		_ = held.WriteHeader(&req) // a buffer takes all
	case p.auth != "":
		req.WriteString("Proxy-Authorization: " + p.auth + "\r\n")
	}
	req.WriteString("\r\n")
	if _, err := c.Write(req.Bytes()); err != nil {
		return "doesn't answer CONNECT: " + Words(err)
	}
	// Byte by byte: what follows the head belongs to the tunnel, and the
	// connection must stay bare for splice(2).
	var head strings.Builder
	one := make([]byte, 1)
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		if head.Len() >= maxProxyHead {
			return "answers CONNECT with something that isn't HTTP"
		}
		if _, err := c.Read(one); err != nil {
			return "doesn't answer CONNECT: " + Words(err)
		}
		head.WriteByte(one[0])
	}
	line, _, _ := strings.Cut(head.String(), "\r\n")
	f := strings.Fields(line)
	if len(f) < 2 || !strings.HasPrefix(f[0], "HTTP/1.") {
		return "answers CONNECT with something that isn't HTTP"
	}
	switch code, err := strconv.ParseUint(f[1], 10, 16); {
	case err != nil || code < 100 || code > 599:
		return "answers CONNECT with something that isn't HTTP"
	case code == 407 && held != nil:
		held.Refused()
		return "refuses CONNECT with 407: it doesn't take its credential"
	case code == 407:
		return "refuses CONNECT with 407: it wants credentials"
	case code != 200:
		return fmt.Sprintf("refuses CONNECT with %d", code)
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return "doesn't answer CONNECT: " + Words(err)
	}
	return ""
}

// Words describes why a dial failed in fixed words: the error's own text may name
// addresses of the machine, its resolvers and its proxy, which no room may learn.
func Words(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timed out"
	case errors.Is(err, unix.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, unix.ECONNRESET):
		return "connection reset"
	case errors.Is(err, io.EOF):
		return "connection closed"
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		return "no route to it"
	}
	return "the connection failed"
}
