package guard

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestEveryRefusalIsOneEvent is B28 for requests: each that the guard refuses is
// one event with the host, where that is known; a connection that ends is none.
func TestEveryRefusalIsOneEvent(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	const post = "POST / HTTP/1.1\r\nHost: allowed.example.org\r\nTransfer-Encoding: chunked\r\n\r\n"
	for i, c := range []struct{ what, tunnel, send, reason, name string }{
		{"another host in a tunnel", "allowed.example.org:80", "GET / HTTP/1.1\r\nHost: denied.example.org\r\n\r\n", "other-name", "denied.example.org"},
		{"another port in a tunnel", "allowed.example.org:80", "GET / HTTP/1.1\r\nHost: allowed.example.org:81\r\n\r\n", "malformed", ""},
		{"a denied host", "", "GET / HTTP/1.1\r\nHost: denied.example.org\r\n\r\n", "not-allowed", "denied.example.org"},
		{"a head that is too long", "", "GET / HTTP/1.1\r\nHost: denied.example.org\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", "malformed", ""},
		{"a head with too many lines", "", "GET / HTTP/1.1\r\nHost: denied.example.org\r\n" + strings.Repeat("X: x\r\n", 300) + "\r\n", "malformed", ""},
		{"a length that is no chunk's", "", post + "zz\r\n", "malformed", "allowed.example.org"},
		{"a chunk that goes on", "", post + "2\r\nabcd\r\n0\r\n\r\n", "malformed", "allowed.example.org"},
		{"a chunk's line that is too long", "", post + strings.Repeat("0", 8<<10) + "2\r\n", "malformed", "allowed.example.org"},
		{"a trailer that is none", "", post + "2\r\nab\r\n0\r\nno trailer\r\n\r\n", "malformed", "allowed.example.org"},
		{"a trailer that is too long", "", post + "2\r\nab\r\n0\r\nX: " + strings.Repeat("x", 8<<10) + "\r\n\r\n", "malformed", "allowed.example.org"},
		{"trailers that are too many", "", post + "2\r\nab\r\n0\r\n" + strings.Repeat("X: x\r\n", 20<<10) + "\r\n", "malformed", "allowed.example.org"},
		{"two hosts", "", "GET http://allowed.example.org/ HTTP/1.1\r\nHost: denied.example.org\r\n\r\n", "host-header", "allowed.example.org"},
		{"two hosts, one not valid", "", "GET http://a@b/ HTTP/1.1\r\nHost: denied.example.org\r\n\r\n", "malformed", ""},
		{"the last hop", "", "TRACE / HTTP/1.1\r\nHost: allowed.example.org\r\nMax-Forwards: 0\r\n\r\n", "last-hop", "allowed.example.org"},
		{"a body that ends early", "", "POST / HTTP/1.1\r\nHost: allowed.example.org\r\nContent-Length: 9\r\n\r\nab", "", ""},
		{"a chunk that ends early", "", post + "9\r\nab", "", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			before := w.guard.count(func(e event) bool { return e.Verdict == "deny" })
			to := testnet.Allowed + ":80"
			if c.tunnel != "" {
				to = explicitAddr
			}
			nc := w.mustDial("room", "tcp", to).(*net.TCPConn)
			defer nc.Close()
			if c.tunnel != "" {
				fmt.Fprintf(nc, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", c.tunnel)
				if _, err := io.ReadFull(nc, make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))); err != nil {
					t.Fatal(err)
				}
			}
			nc.SetDeadline(time.Now().Add(10 * time.Second))
			io.WriteString(nc, c.send)
			nc.CloseWrite()
			_, _ = io.Copy(io.Discard, nc)
			one := 0
			if c.reason != "" {
				one = 1
			}
			w.guard.eventually(one+before, "denials", func(e event) bool { return e.Verdict == "deny" })
			found := 0
			w.guard.mu.Lock()
			defer w.guard.mu.Unlock()
			for _, e := range w.guard.lines[max(0, len(w.guard.lines)-8):] {
				if e.Verdict == "deny" && e.Reason == c.reason && e.Name == c.name {
					found++
				}
			}
			if found == 0 && one == 1 {
				t.Errorf("%d: no event of %s with %q", i, c.reason, c.name)
			}
		})
	}
	// Questions that aren't ones.
	nc := w.mustDial("room", "udp", "10.0.0.1:53")
	defer nc.Close()
	const flood = 100
	for range flood {
		nc.Write([]byte("too short"))
	}
	lines := func() (n int) {
		w.guard.mu.Lock()
		defer w.guard.mu.Unlock()
		for _, e := range w.guard.lines {
			if e.Kind == "dns" && e.Reason == "malformed" {
				n++
			}
		}
		return n
	}
	w.guard.eventually(flood, "malformed questions", func(e event) bool { return e.Kind == "dns" && e.Reason == "malformed" && e.Port == 53 })
	if n := lines(); n > 3 {
		t.Errorf("%d lines for a flood", n)
	}
}
