package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// conn is a connection for one request.
type conn struct {
	net.Conn
	proxied bool // a proxy reads the request
	stop    func() bool
}

func (c *conn) close() {
	c.stop()
	c.Close()
}

// proxyFor reads the environment once in a process, which is linked with net/http
// in any case. Tests read it each time.
var proxyFor = http.ProxyFromEnvironment

// Dial connects to a port of a host, a name or an address, if that is allowed.
type Dial func(ctx context.Context, host string, port uint16) (net.Conn, error)

// connect reaches the server of a URL: by dial, or else by the proxy that the environment names
// (in a room it is the guard's, which says why it refuses), else directly.
func connect(ctx context.Context, dial Dial, u *url.URL) (*conn, error) {
	var proxy *url.URL
	var err error
	if dial == nil {
		if proxy, err = proxyFor(&http.Request{URL: u}); err != nil {
			return nil, fmt.Errorf("the proxy of the environment: %w", err)
		}
	}
	server := address(u)
	to := server
	if proxy != nil {
		if proxy.Scheme != "http" {
			return nil, fmt.Errorf("the proxy %s of the environment is not an HTTP proxy", proxy.Redacted())
		}
		to = address(proxy)
	}
	var plain net.Conn
	if dial != nil {
		host, port := hostPort(u)
		plain, err = dial(ctx, host, port)
	} else {
		plain, err = (&net.Dialer{}).DialContext(ctx, "tcp", to)
	}
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: plain, proxied: proxy != nil && u.Scheme == "http"}
	c.stop = context.AfterFunc(ctx, func() { _ = plain.SetDeadline(time.Unix(1, 0)) })
	if u.Scheme != "https" {
		return c, nil
	}
	if proxy != nil {
		if err := c.tunnel(ctx, server); err != nil {
			c.close()
			return nil, err
		}
	}
	t := tls.Client(plain, &tls.Config{ServerName: u.Hostname(), NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
	if err := t.HandshakeContext(ctx); err != nil {
		c.close()
		return nil, explain(err)
	}
	c.Conn = t
	return c, nil
}

func hostPort(u *url.URL) (string, uint16) {
	_, text, _ := net.SplitHostPort(address(u))
	port, _ := strconv.ParseUint(text, 10, 16) // was looked at by parse
	return u.Hostname(), uint16(port)
}

func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// tunnel asks the proxy for a connection to the server.
func (c *conn) tunnel(ctx context.Context, server string) error {
	server = withoutZone(server)
	if err := ask(c, http.MethodConnect, server, server); err != nil {
		return fmt.Errorf("request to the proxy: %w", err)
	}
	resp, err := c.response((&http.Request{Method: http.MethodConnect}).WithContext(ctx))
	if err != nil {
		return fmt.Errorf("the proxy: %w", err)
	}
	if err := refusal(resp); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy responded %.200q", resp.Status)
	}
	return nil // a server of TLS says nothing before it is asked: the reader holds no byte of it
}

// ask writes the head of a request. http.Request.Write would add what
// these few don't need, bodies and trailers, and 40 kB.
func ask(w io.Writer, method, target, host string, fields ...string) error {
	head := append([]string{method + " " + target + " HTTP/1.1", "Host: " + host, "User-Agent: workshop/1"}, fields...)
	_, err := io.WriteString(w, strings.Join(head, "\r\n")+"\r\n\r\n")
	return err
}

// response reads the head of an answer, after those that only say to wait.
func (c *conn) response(req *http.Request) (*http.Response, error) {
	bound := &io.LimitedReader{R: c, N: maxHead}
	br := bufio.NewReader(bound)
	for range 5 {
		resp, err := http.ReadResponse(br, req)
		switch {
		case err != nil && bound.N <= 0:
			return nil, fmt.Errorf("the header of the response is longer than %d bytes", maxHead)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("the connection was closed without a response")
		case err != nil:
			return nil, fmt.Errorf("not a valid HTTP response: %w", err)
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the server switched protocols without a request to do so")
		case resp.StatusCode >= 200:
			bound.N = maxWire
			return resp, nil
		}
	}
	return nil, errors.New("the server sent 1xx responses only")
}

// explain tells a missing set of certificates from a wrong certificate.
func explain(err error) error {
	var unknown x509.UnknownAuthorityError
	var none x509.SystemRootsError
	if errors.As(err, &none) {
		return noRoots(err)
	}
	if errors.As(err, &unknown) {
		if pool, perr := x509.SystemCertPool(); perr != nil || pool.Equal(x509.NewCertPool()) {
			return noRoots(err)
		}
	}
	return err
}

func noRoots(err error) error {
	return fmt.Errorf("the worker's image has no CA certificates, so no server can be trusted: install the package ca-certificates in the image, or set SSL_CERT_FILE (%w)", err)
}
