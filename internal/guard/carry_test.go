package guard

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// get asks for a path over a connection and returns the server's echo.
func get(w *world, c net.Conn, url string) (testnet.Echo, int, string) {
	w.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		w.Fatal(err)
	}
	if err := req.Write(c); err != nil {
		w.Fatal(err)
	}
	return readEcho(w, bufio.NewReader(c), req)
}

func readEcho(w *world, br *bufio.Reader, req *http.Request) (e testnet.Echo, status int, body string) {
	w.Helper()
	resp, err := http.ReadResponse(br, req)
	if err != nil {
		w.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	_ = json.Unmarshal(b, &e)
	return e, resp.StatusCode, string(b)
}

func (w *world) tls(room, addr, sni string) (*tls.Conn, error) {
	w.Helper()
	c := tls.Client(w.mustDial(room, "tcp", addr), &tls.Config{ServerName: sni, RootCAs: w.in.Roots()})
	return c, c.Handshake()
}

// nameless sends a hello without a server name.
func (w *world) nameless(addr string) error {
	w.Helper()
	return tls.Client(w.mustDial("room", "tcp", addr), &tls.Config{InsecureSkipVerify: true}).Handshake()
}

// families returns the addresses that exist here.
func (w *world) families(v4, v6 string) []string {
	if w.in.IPv6 {
		return []string{v4, v6}
	}
	w.Log("no IPv6 here")
	return []string{v4}
}

// TestTLS is B24: 443 goes by name, to the guard's own answer.
func TestTLS(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "portless.example.org:8443"))
	for _, to := range w.families(testnet.Allowed, testnet.Allowed6) {
		c, err := w.tls("room", net.JoinHostPort(to, "443"), "allowed.example.org")
		if err != nil {
			t.Fatalf("allowed: %v", err)
		}
		if e, _, _ := get(w, c, "https://allowed.example.org/x"); e.SNI != "allowed.example.org" {
			t.Errorf("allowed: %+v", e)
		}
	}
	// An allowed name at the attacker's address: the real server gets it.
	w.in.Reset()
	for _, to := range w.families(testnet.Evil, testnet.Evil6) {
		c, err := w.tls("room", net.JoinHostPort(to, "443"), "allowed.example.org")
		if err != nil {
			t.Fatalf("spoofed: %v", err)
		}
		if e, _, _ := get(w, c, "https://allowed.example.org/secret"); e.Server != testnet.Allowed && e.Server != testnet.Allowed6 {
			t.Errorf("spoofed: %+v", e)
		}
		if n := w.in.Packets("tcp", to, 0); n != 0 {
			t.Errorf("%d packets reached %s", n, to)
		}
		w.guard.eventually(1, "the mismatch", func(e event) bool {
			return e.Kind == "tls" && e.Verdict == "note" && e.Reason == "mismatch" && e.Address == to
		})
	}
	for _, sni := range []string{"denied.example.org", "evil.example.net", "portless.example.org"} {
		start := testutil.Now()
		_, err := w.tls("room", testnet.Denied+":443", sni)
		if err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s: %v", sni, err)
		}
		if d := testutil.Since(start); d > time.Second {
			t.Errorf("%s: denied after %s", sni, d)
		}
	}
	if n := w.in.Packets("tcp", testnet.Denied, 0); n != 0 {
		t.Errorf("%d packets to a denied server", n)
	}
	if n := w.in.Asked("denied.example.org"); n != 0 {
		t.Errorf("a denied SNI caused %d DNS queries", n)
	}
	if err := w.nameless(testnet.Allowed + ":443"); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("a hello without a name: %v", err)
	}
	c := w.mustDial("room", "tcp", testnet.Allowed+":443")
	io.WriteString(c, "SSH-2.0-tunnel\r\n")
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("not TLS on 443: %v", err)
	}
	for _, to := range []string{"169.254.169.254:443", "198.18.0.1:443"} { // metadata, the guard itself
		if err := w.nameless(to); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("a hello without a name to %s: %v", to, err)
		}
	}
	for _, c := range []struct{ address, reason, suggest string }{
		{testnet.Allowed, "no-sni", "{cidr: 198.51.100.10/32, port: 443}"},
		{testnet.Allowed, "not-tls", "{cidr: 198.51.100.10/32, port: 443}"},
		{"169.254.169.254", "metadata", ""},
		{"198.18.0.1", "no-sni", ""},
	} {
		w.guard.eventually(1, "denial without a name", func(e event) bool {
			return e.Kind == "tls" && e.Name == "" && e.Address == c.address && e.Reason == c.reason && e.Suggest == c.suggest
		})
	}
	w.guard.eventually(1, "denial of evil.example.net", func(e event) bool {
		return e.Kind == "tls" && e.Name == "evil.example.net" && e.Suggest != "" && e.Port == 443 && e.Address == testnet.Denied
	})
	w.guard.eventually(1, "port 443 of a name that is allowed on another", func(e event) bool {
		return e.Name == "portless.example.org" && e.Reason == firewall.ReasonPort
	})
}

// TestHTTP is B24 for port 80: every request by its own Host.
func TestHTTP(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "second.example.org:80"))
	w.in.Answer("second.example.org", testnet.A("198.51.100.12"))
	for _, to := range w.families(testnet.Evil, testnet.Evil6) {
		c := w.mustDial("room", "tcp", net.JoinHostPort(to, "80"))
		e, _, _ := get(w, c, "http://allowed.example.org/x?y=1")
		if (e.Server != testnet.Allowed && e.Server != testnet.Allowed6) || e.Path != "/x?y=1" || e.Host != "allowed.example.org" {
			t.Errorf("spoofed address: %+v", e)
		}
		if n := w.in.Packets("tcp", to, 0); n != 0 {
			t.Errorf("%d packets reached %s", n, to)
		}
	}
	// Pipelined: the second request is for another host, the third for a
	// denied one, the fourth is allowed again.
	c := w.mustDial("room", "tcp", testnet.Allowed+":80")
	io.WriteString(c, "GET /1 HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n"+
		"POST /2 HTTP/1.1\r\nHost: second.example.org\r\nContent-Length: 5\r\n\r\nhello"+
		"GET /3 HTTP/1.1\r\nHost: evil.example.net\r\n\r\n"+
		"GET /4 HTTP/1.1\r\nHost: ALLOWED.example.org:80\r\n\r\n")
	br := bufio.NewReader(c)
	for i, want := range []struct {
		status int
		server string
	}{{200, testnet.Allowed}, {200, "198.51.100.12"}, {403, ""}, {200, testnet.Allowed}} {
		e, status, body := readEcho(w, br, nil)
		if e.Server == testnet.Allowed6 {
			e.Server = testnet.Allowed
		}
		if status != want.status || e.Server != want.server {
			t.Errorf("request %d: %d %+v %s", i+1, status, e, body)
		}
		if status == 403 && body != "workshop: evil.example.net:80 is not allowed in this workshop: do not retry, tell the person\n"+whatIsOpen {
			t.Errorf("the denial isn't what a program is told: %q", body)
		}
	}
	if n := w.in.Packets("tcp", testnet.Evil, 0); n != 0 {
		t.Errorf("%d packets reached the evil host", n)
	}
	w.guard.eventually(1, "denied Host", func(e event) bool { return e.Kind == "http" && e.Name == "evil.example.net" })

	for name, raw := range map[string]string{
		"two hosts":        "GET / HTTP/1.1\r\nHost: allowed.example.org\r\nHost: evil.example.net\r\n\r\n",
		"length and te":    "POST / HTTP/1.1\r\nHost: allowed.example.org\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"absolute differs": "GET http://allowed.example.org/ HTTP/1.1\r\nHost: evil.example.net\r\n\r\n",
		"h2c preface":      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"folded header":    "GET / HTTP/1.1\r\nHost: allowed.example.org\r\nX: a\r\n b\r\n\r\n",
		"connect":          "CONNECT evil.example.net:443 HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n",
		"no host":          "GET / HTTP/1.1\r\n\r\n",
		"odd te":           "POST / HTTP/1.1\r\nHost: allowed.example.org\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"decimal address":  "GET / HTTP/1.1\r\nHost: 2130706433\r\n\r\n",
		"user info":        "GET / HTTP/1.1\r\nHost: allowed.example.org@evil.example.net\r\n\r\n",
	} {
		w.in.Reset()
		c := w.mustDial("room", "tcp", testnet.Allowed+":80")
		io.WriteString(c, raw)
		if _, status, body := readEcho(w, bufio.NewReader(c), nil); status != 400 {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if n := len(w.in.Counts().Requests); n != 0 {
			t.Errorf("%s: %d requests reached a server", name, n)
		}
	}
}

// TestHTTPBodies: chunked uploads, large downloads, 100-continue, WebSocket.
func TestHTTPBodies(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	c := w.mustDial("room", "tcp", testnet.Allowed+":80")
	req, _ := http.NewRequest("POST", "http://allowed.example.org/up", io.LimitReader(zeros{}, 3<<20))
	req.Header.Set("Expect", "100-continue")
	req.TransferEncoding = []string{"chunked"}
	go req.Write(c)
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, req)
	if err == nil && resp.StatusCode == 100 {
		resp, err = http.ReadResponse(br, req)
	}
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("upload: %v %v", resp, err)
	}
	io.Copy(io.Discard, resp.Body)
	req, _ = http.NewRequest("GET", "http://allowed.example.org/bytes/3000000", nil)
	req.Write(c)
	if resp, err = http.ReadResponse(br, req); err != nil {
		t.Fatalf("download: %v", err)
	}
	if n, err := io.Copy(io.Discard, resp.Body); n != 3000000 || err != nil {
		t.Errorf("download: %d bytes, %v", n, err)
	}
	io.WriteString(c, "GET /upgrade HTTP/1.1\r\nHost: allowed.example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if resp, err = http.ReadResponse(br, nil); err != nil || resp.StatusCode != 101 {
		t.Fatalf("websocket: %v %v", resp, err)
	}
	io.WriteString(c, "frame")
	buf := make([]byte, 5)
	if _, err := io.ReadFull(br, buf); err != nil || string(buf) != "frame" {
		t.Errorf("websocket echo: %q %v", buf, err)
	}
	// h2c is not asked for upstream: the request is served as HTTP/1.1.
	c = w.mustDial("room", "tcp", testnet.Allowed+":80")
	io.WriteString(c, "GET /upgrade HTTP/1.1\r\nHost: allowed.example.org\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n")
	e, status, _ := readEcho(w, bufio.NewReader(c), nil)
	if status != 200 || e.Header.Get("Upgrade") != "" || e.Header.Get("Http2-Settings") != "" {
		t.Errorf("h2c: %d %+v", status, e)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestPinned is B25: another port is reached at the addresses that the guard
// answered for a name that is allowed there, and nowhere else.
func TestPinned(t *testing.T) {
	w := newWorld(t, restricted(t, "ssh.example.org:22", "allowed.example.org", "198.51.100.192/26:9000", "2001:db8:1:9::/64:9000"))
	w.refused("room", testnet.SSH+":22") // the name wasn't looked up yet
	types := map[string]uint16{testnet.SSH: dns.TypeA, testnet.SSH6: dns.TypeAAAA}
	for _, to := range w.families(testnet.SSH, testnet.SSH6) {
		w.ask("room", "udp", "10.0.0.1:53", "ssh.example.org", types[to])
		c := w.mustDial("room", "tcp", net.JoinHostPort(to, "22"))
		if line, err := bufio.NewReader(c).ReadString('\n'); strings.TrimSpace(line) != testnet.SSHBanner {
			t.Errorf("%s: %q %v", to, line, err)
		}
	}
	// The other port's name is pinned too, but not allowed on 22.
	w.ask("room", "udp", "10.0.0.1:53", "allowed.example.org", dns.TypeA)
	for _, to := range append(w.families("198.51.100.23:22", "[2001:db8:1::23]:22"), testnet.Allowed+":22") {
		w.refused("room", to)
	}
	for _, to := range w.families("198.51.100.200:9000", "[2001:db8:1:9::1]:9000") {
		c := w.mustDial("room", "tcp", to)
		io.WriteString(c, "ping")
		buf := make([]byte, 4)
		if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "ping" {
			t.Errorf("range %s: %q %v", to, buf, err)
		}
	}
	w.refused("room", "198.51.100.10:9000")
	// Ports that no line mentions never come to the guard.
	for _, to := range w.families(testnet.SSH+":2222", "["+testnet.SSH6+"]:2222") {
		if _, err := w.dial("room", "tcp", to); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if n := w.in.Packets("tcp", "198.51.100.23", 0) + w.in.Conns(testnet.SSH, 2222); n != 0 {
		t.Errorf("%d packets where none may go", n)
	}
	w.guard.eventually(1, "the neighbour", func(e event) bool { return e.Kind == "tcp" && e.Address == "198.51.100.23" && e.Port == 22 })
	w.guard.eventually(1, "a name on another port", func(e event) bool {
		return e.Kind == "tcp" && e.Address == testnet.Allowed && e.Name == "allowed.example.org" && e.Port == 22 && e.Reason == firewall.ReasonPort
	})
	w.guard.eventually(1, "a refused packet, with its name", func(e event) bool {
		return e.Kind == "kernel" && e.Address == testnet.SSH && e.Port == 2222 && e.Name == "ssh.example.org" && e.Protocol == "tcp"
	})
}

// TestNeverList is B26 and B31 at the dialler: ranges that a rule opens, and
// what no rule opens.
func TestNeverList(t *testing.T) {
	w := newWorld(t, restricted(t, "0.0.0.0/1:9000", "128.0.0.0/2:9000", "192.0.0.0/3:9000", "::/0:9000", "inside.example.org:443", "linked.example.org"))
	w.in.Answer("inside.example.org", testnet.A("10.1.2.3"))
	w.in.Answer("linked.example.org", testnet.A("198.18.0.2"))
	// The control: the range does open what may be opened.
	c := w.mustDial("room", "tcp", "198.51.100.77:9000")
	io.WriteString(c, "x")
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatalf("control: %v", err)
	}
	never := []string{"169.254.169.254", "169.254.1.1", "168.63.129.16", "100.100.100.200", "224.0.0.1", "240.0.0.1", "0.0.0.1",
		testnet.DNS, "198.18.0.1"} // the last two: the resolver, the guard itself
	if w.in.IPv6 {
		never = append(never, "fe80::1%lo", "fd00:ec2::254", "64:ff9b::c633:640a", "2002:c633:640a::1", "2001:db8:ffff::1", "ff02::1")
	}
	for _, a := range never {
		w.refused("room", net.JoinHostPort(a, "9000"))
	}
	w.guard.eventually(1, "metadata", func(e event) bool { return e.Address == "169.254.169.254" && e.Reason == "metadata" && e.Suggest == "" })
	w.guard.eventually(1, "the guard itself", func(e event) bool { return e.Address == "198.18.0.1" && e.Reason == "own-address" })
	w.guard.eventually(1, "the resolver", func(e event) bool { return e.Address == testnet.DNS && e.Reason == "upstream" })
	for _, name := range []string{"inside.example.org", "linked.example.org"} {
		start := testutil.Now()
		if _, err := w.tls("room", testnet.Allowed+":443", name); err == nil {
			t.Errorf("%s was reached", name)
		}
		if d := testutil.Since(start); d > time.Second {
			t.Errorf("%s: %s", name, d)
		}
	}
	w.guard.eventually(1, "a private answer", func(e event) bool {
		return e.Kind == "tls" && e.Name == "inside.example.org" && e.Address == "10.1.2.3" && e.Reason == "private" && strings.Contains(e.Suggest, "private: true")
	})
	if n := w.in.Packets("tcp", testnet.DNS, 0); n != 0 {
		t.Errorf("%d packets to the resolver's address over TCP", n)
	}
}

// TestOpen: any public address over TCP; the never-list and deny hold.
func TestOpen(t *testing.T) {
	w := newWorld(t, firewall.Policy{Rooms: []firewall.RoomPolicy{{
		Room: "room", Mode: firewall.Open, Workers: []string{"w"},
		Deny: []firewall.Rule{denyRule(t, "denied.example.org"), {CIDR: netip.MustParsePrefix("198.51.100.66/32"), Ports: []firewall.PortRange{firewall.AllPorts}}},
	}}})
	c := w.mustDial("room", "tcp", "198.51.100.40:2222")
	io.WriteString(c, "x")
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Errorf("any port: %v", err)
	}
	if tc, err := w.tls("room", "198.51.100.41:443", "anything.example.com"); err != nil {
		t.Errorf("any name: %v", err)
	} else if e, _, _ := get(w, tc, "https://anything.example.com/"); e.Server != "198.51.100.41" {
		t.Errorf("any name: %+v", e)
	}
	if _, err := w.tls("room", "198.51.100.41:443", "denied.example.org"); err == nil {
		t.Error("a denied SNI passed")
	}
	w.refused("room", "198.51.100.66:2222")
	c = w.mustDial("room", "tcp", "169.254.169.254:80")
	if _, status, _ := get(w, c, "http://169.254.169.254/"); status != 403 {
		t.Errorf("metadata: %d", status)
	}
	if r := w.ask("room", "udp", "10.0.0.1:53", "denied.example.org", dns.TypeA); r.Rcode != dns.RcodeNameError {
		t.Errorf("a denied name: %v", r)
	}
}

func denyRule(t testing.TB, host string) firewall.Rule {
	r := rule(t, host, 50)
	r.Ports = []firewall.PortRange{firewall.AllPorts}
	return r
}
