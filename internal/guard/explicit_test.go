package guard

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testnet"
)

const explicitAddr = "127.0.0.1:536"

// TestExplicitProxy: HTTP_PROXY gives the same decisions with an explanation,
// and a CONNECT tunnel holds one name inside and out.
func TestExplicitProxy(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "second.example.org", "ssh.example.org:22", "198.51.100.192/26:9000"))
	w.in.Answer("second.example.org", testnet.A("198.51.100.12"))
	connect := func(target string) (c *bufio.ReadWriter, raw io.ReadWriter, status int, body string) {
		nc := w.mustDial("room", "tcp", explicitAddr)
		io.WriteString(nc, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n")
		br := bufio.NewReader(nc)
		req, _ := http.NewRequest("CONNECT", "http://x", nil)
		resp, err := http.ReadResponse(br, req)
		if err != nil {
			t.Fatalf("CONNECT %s: %v", target, err)
		}
		if resp.StatusCode != 200 {
			b, _ := io.ReadAll(resp.Body)
			body = string(b)
		}
		return bufio.NewReadWriter(br, bufio.NewWriter(nc)), nc, resp.StatusCode, body
	}
	tunnelTLS := func(target, sni string) (*tls.Conn, error) {
		nc := w.mustDial("room", "tcp", explicitAddr)
		io.WriteString(nc, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n")
		head := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
		if _, err := io.ReadFull(nc, head); err != nil || !strings.Contains(string(head), " 200 ") {
			t.Fatalf("CONNECT %s: %q %v", target, head, err)
		}
		c := tls.Client(nc, &tls.Config{ServerName: sni, RootCAs: w.in.Roots()})
		return c, c.Handshake()
	}

	c, err := tunnelTLS("allowed.example.org:443", "allowed.example.org")
	if err != nil {
		t.Fatal(err)
	}
	if e, _, _ := get(w, c, "https://allowed.example.org/"); e.SNI != "allowed.example.org" {
		t.Errorf("tunnel: %+v", e)
	}
	w.in.Reset()
	if _, err := tunnelTLS("allowed.example.org:443", "evil.example.net"); err == nil {
		t.Error("another SNI passed in an allowed tunnel")
	}
	if _, err := tunnelTLS("allowed.example.org:443", "second.example.org"); err == nil {
		t.Error("an allowed SNI of another tunnel passed")
	}
	if n := len(w.in.Counts().Hellos); n != 0 {
		t.Errorf("%d hellos reached a server", n)
	}
	w.guard.eventually(1, "another name in a tunnel", func(e event) bool { return e.Reason == "other-name" && e.Name == "evil.example.net" })

	for target, why := range map[string]string{
		"evil.example.net:443":    "not allowed in this workshop:",
		"allowed.example.org:22":  "not allowed in this workshop (with this port):",
		"198.51.100.66:443":       "not allowed in this workshop:",
		"169.254.169.254:80":      "metadata",
		"[::ffff:127.0.0.1]:9000": "malformed",
		"127.0.0.1:9000":          "loopback",
	} {
		_, _, status, body := connect(target)
		if (status != 403 && status != 400) || !strings.Contains(body, why) || strings.Contains(body, "workshop firewall") {
			t.Errorf("CONNECT %s: %d %s", target, status, body)
		}
	}
	rw, _, status, _ := connect("ssh.example.org:22")
	if line, err := rw.ReadString('\n'); status != 200 || strings.TrimSpace(line) != testnet.SSHBanner {
		t.Errorf("ssh by CONNECT: %d %q %v", status, line, err)
	}
	rw, raw, status, _ := connect("198.51.100.200:9000")
	io.WriteString(raw, "ping")
	if b, err := rw.Peek(4); status != 200 || string(b) != "ping" {
		t.Errorf("range by CONNECT: %d %q %v", status, b, err)
	}

	// Absolute-form, two hosts on one connection, a denied one between them.
	nc := w.mustDial("room", "tcp", explicitAddr)
	br := bufio.NewReader(nc)
	for _, x := range []struct {
		host   string
		status int
	}{{"allowed.example.org", 200}, {"evil.example.net", 403}, {"second.example.org", 200}} {
		io.WriteString(nc, "GET http://"+x.host+"/p?q HTTP/1.1\r\nHost: "+x.host+"\r\nProxy-Connection: keep-alive\r\n\r\n")
		e, status, body := readEcho(w, br, nil)
		if status != x.status || status == 200 && (e.Host != x.host || e.Path != "/p?q" || e.Header.Get("Proxy-Connection") != "") {
			t.Errorf("%s: %d %+v %s", x.host, status, e, body)
		}
	}
	// HTTP inside a tunnel to port 80 is looked at too (WebSocket clients).
	rw, raw, _, _ = connect("allowed.example.org:80")
	io.WriteString(raw, "GET / HTTP/1.1\r\nHost: allowed.example.org\r\n\r\nGET / HTTP/1.1\r\nHost: second.example.org\r\n\r\n")
	if _, status, _ := readEcho(w, rw.Reader, nil); status != 200 {
		t.Errorf("http in a tunnel: %d", status)
	}
	if _, status, body := readEcho(w, rw.Reader, nil); status != 400 {
		t.Errorf("another host in a tunnel: %d %s", status, body)
	}
	nc = w.mustDial("room", "tcp", explicitAddr)
	io.WriteString(nc, "GET / HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n")
	if _, status, body := readEcho(w, bufio.NewReader(nc), nil); status != 400 || !strings.Contains(body, "HTTP proxy") {
		t.Errorf("origin-form: %d %s", status, body)
	}
	if n := w.in.Packets("tcp", testnet.Evil, 0); n != 0 {
		t.Errorf("%d packets to the evil host", n)
	}
}
