package guard

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// TestB28_UpstreamProxy is P4 and P5: behind network.proxy events name the
// address that the guard checked, not the proxy's; one that refuses is told to the
// worker without the credentials, at once.
func TestB28_UpstreamProxy(t *testing.T) {
	p := restricted(t, "allowed.example.org", "second.example.org")
	p.Proxy = "http://user:" + secret + "@198.51.100.80:3128"
	w := buildWorld(t, p)
	w.in.Answer("second.example.org", testnet.A("198.51.100.12"))
	w.in.Answer("allowed.example.org", testnet.A(testnet.Allowed))
	l := w.listenOutside("198.51.100.80:3128")
	go testnet.Serve(l, func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		if !strings.HasPrefix(req.RequestURI, testnet.Allowed+":") {
			io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
			return
		}
		io.WriteString(c, "HTTP/1.1 200 ok\r\n\r\n")
		io.Copy(c, c)
	})
	w.startRooms()
	w.startGuard()
	c := w.mustDial("room", "tcp", explicitAddr)
	io.WriteString(c, "CONNECT allowed.example.org:80 HTTP/1.1\r\nHost: x.example.org\r\n\r\n")
	if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	w.guard.eventually(1, "what was dialled", func(e event) bool {
		return e.Verdict == "allow" && e.Name == "allowed.example.org" && e.Address == testnet.Allowed && e.Port == 80
	})
	start := testutil.Now()
	_, status, body := get(w, w.mustDial("room", "tcp", "198.51.100.12:80"), "http://second.example.org/")
	if status != 502 || body != "workshop: second.example.org can't be reached: the upstream proxy refuses CONNECT with 407: it wants credentials\n" || strings.Contains(body, secret) {
		t.Errorf("%d %s", status, body)
	}
	if d := testutil.Since(start); d > time.Second {
		t.Errorf("after %s", d)
	}
	if n := w.guard.count(func(e event) bool { return e.Verdict == "allow" && e.Name == "second.example.org" }); n != 0 {
		t.Errorf("%d connections were let through that came not about", n)
	}
	w.guard.eventually(1, "that the proxy refused it", func(e event) bool {
		return e.Verdict == "note" && e.Reason == "upstream-proxy" && e.Name == "second.example.org" && e.Port == 80 && e.Address == "198.51.100.12" &&
			strings.Contains(e.raw, `"why":"allowed, but the upstream proxy 198.51.100.80:3128 refuses CONNECT with 407: it wants credentials"`)
	})
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	for _, e := range w.guard.lines {
		if strings.Contains(e.raw, secret) || e.Address == "198.51.100.80" {
			t.Errorf("an event about the proxy: %s", e.raw)
		}
	}
}

// TestB28_AllowedButFailed: what a line allows and comes to nothing is told from
// what is refused: a name without an address, one that no resolver answers for,
// and a host that takes no connection.
func TestB28_AllowedButFailed(t *testing.T) {
	w := buildWorld(t, restricted(t, "allowed.example.org", "gone.example.org", "off.example.org:81", "*.wild.example.org"))
	w.in.Answer("off.example.org", testnet.A("198.51.100.44"))
	w.startRooms()
	w.startGuard()
	note := func(kind, name, reason, rule string) {
		t.Helper()
		w.guard.eventually(1, reason+" "+name, func(e event) bool {
			return e.Verdict == "note" && e.Kind == kind && e.Reason == reason && e.Name == name && e.Rule == rule
		})
	}
	_, status, body := get(w, w.mustDial("room", "tcp", "198.51.100.45:80"), "http://gone.example.org/")
	if status != 502 || !strings.Contains(body, "can't be reached: the name has no address") {
		t.Errorf("%d %s", status, body)
	}
	note("http", "gone.example.org", "unresolved", "workshop.yaml:11")
	w.resolve("room", "off.example.org")
	if c, err := w.dial("room", "tcp", "198.51.100.44:81"); err == nil { // nobody listens
		w.cut(c, time.Second)
	}
	note("tcp", "off.example.org", "unreachable", "workshop.yaml:12")
	if m := w.ask("room", "udp", "127.0.0.1:53", "gone.example.org.", 1); m.Rcode != 3 {
		t.Error(m.Rcode)
	}
	note("dns", "gone.example.org", "unresolved", "workshop.yaml:11")
	// What comes under a wildcard is made up by the worker, and would fill the log.
	if m := w.ask("room", "udp", "127.0.0.1:53", "gone.wild.example.org.", 1); m.Rcode != 3 {
		t.Error(m.Rcode)
	}
	get(w, w.mustDial("room", "tcp", "198.51.100.45:80"), "http://gone.wild.example.org/")
	w.ask("room", "udp", "127.0.0.1:53", "other.example.org.", 1)
	w.guard.eventually(1, "the denial", func(e event) bool { return e.Verdict == "deny" && e.Name == "other.example.org" })
	if n := w.guard.count(func(e event) bool {
		return e.Verdict == "note" && (e.Name == "other.example.org" || e.Name == "gone.wild.example.org") || e.Verdict == "deny" && e.Name != "other.example.org"
	}); n != 0 {
		t.Errorf("%d events say the other thing", n)
	}
}

// TestUnreachableNamesNoAddress: what the guard answers about an allowed host that
// can't be reached names no address: not that of the machine, a resolver or the
// upstream proxy.
func TestUnreachableNamesNoAddress(t *testing.T) {
	try := func(p firewall.Policy, prepare func(*world), host, why string) {
		t.Helper()
		w := buildWorld(t, p)
		prepare(w)
		w.startRooms()
		w.startGuard()
		for _, c := range []struct{ what, request string }{
			{"GET", "GET http://" + host + ":81/ HTTP/1.1\r\nHost: " + host + ":81\r\nConnection: close\r\n\r\n"},
			{"CONNECT", "CONNECT " + host + ":81 HTTP/1.1\r\nHost: " + host + ":81\r\n\r\n"},
		} {
			nc := w.mustDial("room", "tcp", explicitAddr)
			nc.SetDeadline(time.Now().Add(40 * time.Second))
			io.WriteString(nc, c.request)
			b, _ := io.ReadAll(nc)
			nc.Close()
			_, body, _ := strings.Cut(string(b), "\r\n\r\n")
			if want := "workshop: " + host + " can't be reached: " + why + "\n"; !strings.HasPrefix(string(b), "HTTP/1.1 502 ") || body != want {
				t.Errorf("%s: %q, want %q", c.what, b, want)
			}
		}
	}
	p := restricted(t, "off.example.org:81")
	off := func(w *world) { w.in.Answer("off.example.org", testnet.A("198.51.100.44")) }
	try(p, off, "off.example.org", "connection refused")
	p.Resolvers = []string{"198.51.100.44"} // nobody answers there
	try(p, off, "off.example.org", "the name can't be looked up")
	p.Resolvers, p.Proxy = nil, "http://198.51.100.45:3128"
	try(p, off, "off.example.org", "the upstream proxy can't be connected to: connection refused")
	p.Proxy = "http://proxy.example.net:3128"
	try(p, off, "off.example.org", "the upstream proxy can't be resolved")
}
