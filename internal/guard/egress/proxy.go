package egress

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Proxy is the upstream HTTP proxy (network.proxy). It is asked to CONNECT to
// the address that the guard resolved and checked, never to a name, so that it
// can't resolve differently.
type Proxy struct {
	upstream *Upstream
	addr     netip.AddrPort
	auth     string // the Proxy-Authorization header's value
}

// ParseProxy reads the URL of the proxy, http://[user:password@]host:port, and
// returns its host and port; the host may be a name.
func ParseProxy(s string) (host string, port uint16, auth string, err error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" {
		return "", 0, "", errors.New("proxy must be a URL of the form http://[user:password@]host:port")
	}
	n := 80
	if p := u.Port(); p != "" {
		if _, err := fmt.Sscanf(p, "%d", &n); err != nil || n < 1 || n > 65535 {
			return "", 0, "", errors.New("proxy: bad port")
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	return u.Hostname(), uint16(n), auth, nil
}

// NewProxy makes the proxy at an address that upstream knows.
func NewProxy(upstream *Upstream, addr netip.AddrPort, auth string) *Proxy {
	return &Proxy{upstream: upstream, addr: addr, auth: auth}
}

// maxProxyHead bounds the proxy's answer to CONNECT.
const maxProxyHead = 16 << 10

func (p *Proxy) connect(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	nc, err := p.upstream.Dial(ctx, "tcp", p.addr)
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
		return fmt.Errorf("it answered %q", status)
	}
	return c.SetDeadline(time.Time{})
}
