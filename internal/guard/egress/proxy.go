package egress

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/firewall"
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
	auth string // value of the Proxy-Authorization header
	addr atomic.Pointer[netip.AddrPort]
	// refused is why the last address was refused; nil: none was found.
	refused atomic.Pointer[error]
}

// NewProxy parses the URL of the proxy, http://[user:password@]host:port. If its
// host is a name, it carries nothing until [Proxy.Fix]. An address that a
// repository must not name is an error.
func NewProxy(upstream *Upstream, s string, trust Trust) (*Proxy, error) {
	x, err := firewall.ParseProxy(s)
	if err != nil {
		return nil, err
	}
	p := &Proxy{upstream: upstream, trust: trust, Host: x.Host, Port: x.Port}
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
		err = fmt.Errorf("upstream proxy: %s is closed to a repository: %w", p.Host, err)
		p.refused.Store(&err)
		return err
	}
	p.addr.CompareAndSwap(nil, &at)
	return nil
}

// Fixed reports whether the proxy's address is known.
func (p *Proxy) Fixed() bool { return p.addr.Load() != nil }

// ProxyError is the upstream proxy's refusal of a CONNECT.
type ProxyError struct{ Status int }

func (e *ProxyError) Error() string { return fmt.Sprintf("it answered %d", e.Status) }

// maxProxyHead bounds the proxy's answer to CONNECT.
const maxProxyHead = 16 << 10

func (p *Proxy) connect(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	at := p.addr.Load()
	if refused := p.refused.Load(); at == nil && refused != nil {
		return nil, *refused
	}
	if at == nil {
		return nil, fmt.Errorf("upstream proxy: %s doesn't resolve", p.Host)
	}
	nc, err := p.upstream.Dial(ctx, "tcp", *at)
	if err != nil {
		return nil, fmt.Errorf("upstream proxy: %w", err)
	}
	c := nc.(*net.TCPConn)
	if err := p.handshake(ctx, c, to); err != nil {
		c.Close()
		return nil, fmt.Errorf("upstream proxy: %w", err)
	}
	return c, nil
}

func (p *Proxy) handshake(ctx context.Context, c *net.TCPConn, to netip.AddrPort) error {
	if t, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(t)
	}
	req := "CONNECT " + to.String() + " HTTP/1.1\r\nHost: " + to.String() + "\r\n"
	if p.auth != "" {
		req += "Proxy-Authorization: " + p.auth + "\r\n"
	}
	if _, err := c.Write([]byte(req + "\r\n")); err != nil {
		return err
	}
	// Byte by byte: what follows the head belongs to the tunnel, and the
	// connection must stay bare for splice(2).
	var head strings.Builder
	one := make([]byte, 1)
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		if head.Len() >= maxProxyHead {
			return errors.New("its answer is too long")
		}
		if _, err := c.Read(one); err != nil {
			return err
		}
		head.WriteByte(one[0])
	}
	status, _, _ := strings.Cut(head.String(), "\r\n")
	if f := strings.Fields(status); len(f) < 2 || !strings.HasPrefix(f[0], "HTTP/1.") || f[1] != "200" {
		if len(f) > 1 {
			if code, err := strconv.ParseUint(f[1], 10, 16); err == nil && code >= 100 && code < 600 {
				return &ProxyError{Status: int(code)}
			}
		}
		return fmt.Errorf("it answered %q", status[:min(len(status), 80)])
	}
	return c.SetDeadline(time.Time{})
}
