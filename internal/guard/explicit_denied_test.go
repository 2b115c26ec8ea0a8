package guard

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestDenialsInWords is B28 as a program is told it: what was denied and why in one
// sentence, and nothing of what would allow it, which the event has (Suggest).
func TestDenialsInWords(t *testing.T) {
	p := restricted(t, "allowed.example.org", "inside.example.org")
	p.Rooms[0].Deny = []firewall.Rule{denyRule(t, "denied.example.org")}
	w := newWorld(t, p)
	w.in.Answer("inside.example.org", testnet.A("10.1.2.3"))
	for _, c := range []struct {
		url, reason string
		why         string // "" for none
	}{
		{"http://evil.example.net/", "not-allowed", ""},
		{"http://allowed.example.org:8080/", "port", "with this port"},
		{"http://inside.example.org/", "private", "a private address"},
		{"http://198.51.100.66:8080/", "not-allowed", ""},
		{"http://[2001:db8::66]:8080/", "not-allowed", ""},
		{"http://denied.example.org/", "denied", "by a deny line"},
		{"http://169.254.169.254/", "metadata", "the cloud's metadata service, which gives away credentials"},
		{"http://127.0.0.1:8080/", "loopback", "a loopback address outside of the room"},
	} {
		nc := w.mustDial("room", "tcp", explicitAddr)
		io.WriteString(nc, "GET "+c.url+" HTTP/1.1\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		host := strings.Split(c.url, "/")[2]
		if _, port, _ := strings.Cut(strings.Trim(host, "[]"), "]:"); port == "" && !strings.HasSuffix(host, ":8080") {
			host += ":80"
		}
		want := host + " is not allowed in this workshop"
		if c.why != "" {
			want += " (" + c.why + ")"
		}
		want += ": do not retry, tell the person"
		if resp.StatusCode != 403 || resp.Header.Get("X-Workshop-Deny") != c.reason || string(b) != "workshop: "+want+"\n"+whatIsOpen || resp.Status != "403 "+want {
			t.Errorf("%s: %s %v\n%swant %s", c.url, resp.Status, resp.Header, b, want)
		}
	}
	// Port 80 says the same.
	if _, status, body := get(w, w.mustDial("room", "tcp", testnet.Evil+":80"), "http://evil.example.net/"); status != 403 || body != "workshop: evil.example.net:80 is not allowed in this workshop: do not retry, tell the person\n"+whatIsOpen {
		t.Errorf("port 80: %d %s", status, body)
	}
}

// TestTunnelsHoldOneName: within a tunnel nothing leads elsewhere.
func TestTunnelsHoldOneName(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "second.example.org"))
	for name, raw := range map[string]string{
		"CONNECT inside":    "CONNECT second.example.org:443 HTTP/1.1\r\nHost: second.example.org\r\n\r\n",
		"another Host":      "GET / HTTP/1.1\r\nHost: second.example.org\r\n\r\n",
		"absolute-form":     "GET http://second.example.org/ HTTP/1.1\r\nHost: second.example.org\r\n\r\n",
		"https in the form": "GET https://allowed.example.org/ HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n",
		"another port":      "GET / HTTP/1.1\r\nHost: allowed.example.org:8080\r\n\r\n",
		"HTTP/2":            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"length and coding": "POST / HTTP/1.1\r\nHost: allowed.example.org\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		w.in.Reset()
		c := w.mustDial("room", "tcp", explicitAddr)
		br := bufio.NewReader(c)
		io.WriteString(c, "CONNECT allowed.example.org:80 HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n")
		req, _ := http.NewRequest("CONNECT", "http://x", nil)
		if resp, err := http.ReadResponse(br, req); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		io.WriteString(c, raw)
		if _, status, body := readEcho(w, br, nil); status != 400 {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if n := len(w.in.Counts().Requests); n != 0 {
			t.Errorf("%s: %d requests arrived", name, n)
		}
	}
}

// TestForwarding: what a hop has to do (RFC 9110 §7.6, RFC 9112 §7): chunk
// extensions and trailers aren't passed on, TRACE counts down, what a worker says
// about hops is dropped, a body is waited for only where it may go.
func TestForwarding(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "raw.example.org:8080"))
	w.in.Answer("raw.example.org", testnet.A("198.51.100.130"))
	l := w.meter("198.51.100.130:8080")
	heads := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func(c net.Conn) {
				defer c.Close()
				b := make([]byte, 0, 4096)
				for !strings.HasSuffix(string(b), "\r\n\r\n") || strings.Contains(string(b), "chunked") && !strings.HasSuffix(string(b), "0\r\n\r\n") {
					n, err := c.Read(b[len(b):cap(b)])
					if b = b[:len(b)+n]; err != nil {
						return
					}
				}
				heads <- string(b)
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			}(c)
		}
	}()
	for name, x := range map[string]struct {
		raw    string
		status int
		want   string // exactly what arrives
	}{
		"chunk extensions and trailers": {
			"POST http://raw.example.org:8080/ HTTP/1.1\r\nHost: raw.example.org:8080\r\nTrailer: X-Late\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX-Late: GET / HTTP/1.1\r\n\r\n",
			200, "POST / HTTP/1.1\r\nHost: raw.example.org:8080\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		},
		"TRACE": {
			"TRACE http://raw.example.org:8080/ HTTP/1.1\r\nHost: raw.example.org:8080\r\nMax-Forwards: 5\r\n\r\n",
			200, "TRACE / HTTP/1.1\r\nHost: raw.example.org:8080\r\nMax-Forwards: 4\r\n\r\n",
		},
		"the last TRACE": {"TRACE http://raw.example.org:8080/ HTTP/1.1\r\nHost: raw.example.org:8080\r\nMax-Forwards: 0\r\n\r\n", 405, ""},
		"hop-by-hop": {
			"GET http://raw.example.org:8080/?a=%0d%0ab HTTP/1.1\r\nHost: raw.example.org:8080\r\nConnection: close, X-Mine, Host\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n" +
				"Proxy-Authorization: Basic eDp5\r\nX-Forwarded-For: 1.1.1.1\r\nForwarded: for=1.1.1.1\r\nX-Other: 2\r\n\r\n",
			200, "GET /?a=%0d%0ab HTTP/1.1\r\nHost: raw.example.org:8080\r\nX-Other: 2\r\n\r\n",
		},
		"a bad chunk": {"POST http://raw.example.org:8080/ HTTP/1.1\r\nHost: raw.example.org:8080\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 0, ""},
		"a bad end":   {"POST http://raw.example.org:8080/ HTTP/1.1\r\nHost: raw.example.org:8080\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\n\r\n", 0, ""},
	} {
		c := w.mustDial("room", "tcp", explicitAddr)
		io.WriteString(c, x.raw)
		status := 0
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
			status = resp.StatusCode
		}
		got := ""
		select {
		case got = <-heads:
		default:
		}
		if status != x.status || got != x.want {
			t.Errorf("%s: %d %q, want %d %q", name, status, got, x.status, x.want)
		}
	}
	// Who waits for 100 before a body that isn't allowed hears 403 instead.
	c := w.mustDial("room", "tcp", testnet.Allowed+":80")
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: evil.example.net\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
	if _, status, _ := readEcho(w, bufio.NewReader(c), nil); status != 403 {
		t.Errorf("Expect: %d", status)
	}
}
