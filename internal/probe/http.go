//go:build linux

package probe

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// httpGet fetches a URL over HTTP or TLS. With connect= it dials that address
// instead of the name's address; sni= and host= send another name.
func httpGet(a args) (string, string) {
	u, err := url.Parse(a.pos[0])
	if err != nil {
		return "ERROR", err.Error()
	}
	method := a.opt("method", http.MethodGet)
	config := &tls.Config{ServerName: a.opt("sni", "")}
	if file := a.opt("ca", ""); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return seenOf(err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return "ERROR", file + ": no certificate"
		}
	}
	c, proxied, err := a.dialHTTP(u, config)
	if err != nil {
		return seenOf(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(a.limit))
	// http.Request.Write would add bodies, trailers and 40 kB.
	host, target, length := a.opt("host", u.Host), u.RequestURI(), ""
	if proxied {
		target = u.Scheme + "://" + host + target
	}
	if method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		length = "Content-Length: 0\r\n"
	}
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", method, target, host, length); err != nil {
		return seenOf(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		return seenOf(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return seenOf(err)
	}
	return strconv.Itoa(resp.StatusCode), text(body)
}

// dialHTTP connects to the destination of a request for u; proxied is set if that is a
// proxy. http.Transport would do the same, but take a thirtieth of the binary.
func (a args) dialHTTP(u *url.URL, config *tls.Config) (c net.Conn, proxied bool, err error) {
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if p := u.Port(); p != "" {
		port = p
	}
	server := net.JoinHostPort(u.Hostname(), port)
	to := a.opt("connect", server)
	proxy := a.opt("proxy", "")
	if proxy == "env" {
		proxy = os.Getenv(strings.ToUpper(u.Scheme) + "_PROXY")
	}
	if proxy != "" {
		p, err := url.Parse(proxy)
		if err != nil {
			return nil, false, err
		}
		to = p.Host
	}
	if c, err = a.dialer().Dial("tcp", to); err != nil {
		return nil, false, err
	}
	if u.Scheme != "https" {
		return c, proxy != "", nil
	}
	_ = c.SetDeadline(time.Now().Add(a.limit))
	if proxy != "" {
		if err := a.openTunnel(c, server); err != nil {
			c.Close()
			return nil, false, err
		}
	}
	if config.ServerName == "" {
		config.ServerName = u.Hostname()
	}
	return tls.Client(c, config), false, nil
}

// openTunnel asks the proxy at the other end of c for a connection.
func (a args) openTunnel(c net.Conn, to string) error {
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return err
}

// tunnel asks an explicit proxy for a connection, as HTTPS_PROXY users do.
func tunnel(a args) (string, string) {
	c, err := a.dialer().Dial("tcp", a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(a.limit))
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", a.pos[1], a.pos[1]); err != nil {
		return seenOf(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return seenOf(err)
	}
	defer resp.Body.Close()
	var body []byte
	if resp.StatusCode != http.StatusOK { // after 200 the stream is the tunnel
		body, _ = io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	}
	return strconv.Itoa(resp.StatusCode), text(body)
}
