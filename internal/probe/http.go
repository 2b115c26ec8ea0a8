//go:build linux

package probe

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// httpGet fetches a URL over HTTP or TLS. With connect= it dials that address
// instead of what the name resolves to; sni= and host= lie about the name.
func httpGet(a args) (string, string) {
	req, err := http.NewRequest(a.opt("method", http.MethodGet), a.pos[0], nil)
	if err != nil {
		return "ERROR", err.Error()
	}
	req.Host = a.opt("host", "")
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
	tr := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return a.dialer().DialContext(ctx, network, a.opt("connect", addr))
	}
	switch p := a.opt("proxy", ""); p {
	case "":
	case "env":
		tr.Proxy = http.ProxyFromEnvironment
	default:
		u, err := url.Parse(p)
		if err != nil {
			return "ERROR", err.Error()
		}
		tr.Proxy = http.ProxyURL(u)
	}
	client := &http.Client{Transport: tr, Timeout: a.limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
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
	if resp.StatusCode != http.StatusOK { // after 200 the stream belongs to the other side
		body, _ = io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	}
	return strconv.Itoa(resp.StatusCode), text(body)
}
