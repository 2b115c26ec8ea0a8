//go:build linux

package probe

import (
	"crypto/tls"
	"net"
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
	return "handshake", c.RemoteAddr().String() + " " + tls.VersionName(c.ConnectionState().Version)
}
