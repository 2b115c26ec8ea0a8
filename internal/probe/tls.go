//go:build linux

package probe

import (
	"crypto/tls"
	"net"
	"os"
	"time"
)

// handshake does a TLS handshake without sending a request. It doesn't verify the
// certificate, as that is irrelevant to whether the connection was allowed.
func handshake(a args) (string, string) {
	host, _, err := net.SplitHostPort(a.pos[0])
	if err != nil {
		return "ERROR", err.Error()
	}
	config := &tls.Config{ServerName: a.opt("sni", host), InsecureSkipVerify: true}
	c, err := tls.DialWithDialer(a.dialer(), "tcp", a.opt("connect", a.pos[0]), config)
	if err != nil {
		return seenOf(err)
	}
	defer c.Close()
	if text := a.opt("keep", ""); text != "" {
		return kept(c, text)
	}
	return "handshake", c.RemoteAddr().String() + " " + tls.VersionName(c.ConnectionState().Version)
}

// kept waits until a connection ends, or a time is over: nothing is sent, and what comes
// is thrown away.
func kept(c net.Conn, text string) (string, string) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return "ERROR", "keep= is not a duration"
	}
	began := time.Now()
	_ = c.SetDeadline(began.Add(d))
	buf := make([]byte, 4096)
	for err == nil {
		_, err = c.Read(buf)
	}
	if os.IsTimeout(err) {
		return "kept", ""
	}
	seen, _ := seenOf(err)
	return seen, "after " + time.Since(began).Round(time.Millisecond).String()
}
