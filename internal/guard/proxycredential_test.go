package guard

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/lease"
)

const proxySecret = "Basic dXNlcjpjYW5hcnktNGYxZTJk"

// TestB33_ProxyCredential: an upstream proxy with a credential gets it from a lease alone, that
// is its own; a room reaches nothing without, no endpoint has it, and revoking it cuts what was
// connected by it.
func TestB33_ProxyCredential(t *testing.T) {
	p := restricted(t, "allowed.example.org:7000")
	p.Proxy, p.ProxyCredential = "http://198.51.100.80:3128", "corp"
	w := buildWorld(t, p)
	w.in.Answer("allowed.example.org", testnet.A(testnet.Allowed))
	l := w.listenOutside("198.51.100.80:3128")
	asked := make(chan string, 10)
	go testnet.Serve(l, func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		asked <- req.Header.Get("Proxy-Authorization")
		io.WriteString(c, "HTTP/1.1 200 ok\r\n\r\n")
		io.Copy(c, c)
	})
	w.startRooms()
	w.startGuard()
	b, lines := w.attach()
	want := lease.LinesOf(&w.policy)
	if diff := cmp.Diff(want, lines); diff != "" || len(want) != 1 || !want[0].OfProxy() {
		t.Fatal(diff)
	}
	line := want[0]
	tunnel := func() (net.Conn, string) {
		t.Helper()
		c := w.mustDial("room", "tcp", explicitAddr)
		c.SetDeadline(time.Now().Add(10 * time.Second))
		io.WriteString(c, "CONNECT allowed.example.org:7000 HTTP/1.1\r\nHost: allowed.example.org:7000\r\n\r\n")
		head := make([]byte, 12)
		if _, err := io.ReadFull(c, head); err != nil {
			t.Fatal(err)
		}
		return c, string(head)
	}
	closed := func(when string) {
		t.Helper()
		c, head := tunnel()
		body, _ := io.ReadAll(c)
		if head != "HTTP/1.1 502" || !strings.HasSuffix(string(body), "workshop: allowed.example.org can't be reached: the upstream proxy has no credential now: the person can run `workshop up`\n") {
			t.Errorf("%s: %s %s", when, head, body)
		}
		select {
		case got := <-asked:
			t.Errorf("%s: the proxy was asked, with %q", when, got)
		default:
		}
		if s := w.state(); s.ProxyCredential == nil || *s.ProxyCredential != (control.CredentialState{Name: "corp", Host: "198.51.100.80:3128"}) {
			t.Errorf("%s: the state is %+v", when, s.ProxyCredential)
		}
	}
	say := func(change func(*lease.Lease)) {
		m := &lease.Lease{Line: line, Generation: 1, Header: lease.ProxyHeader, Value: lease.Value(proxySecret)}
		change(m)
		b.say(m)
	}
	closed("before it is leased")
	say(func(m *lease.Lease) { m.Host = "198.51.100.81" })
	say(func(m *lease.Lease) { m.Port = 3129 })
	say(func(m *lease.Lease) { m.Credential = "other" })
	say(func(m *lease.Lease) { m.Rule = "0000000000000000" })
	closed("leased for another line")
	say(func(*lease.Lease) {})
	c, head := tunnel()
	if head != "HTTP/1.1 200" {
		t.Fatal(head)
	}
	if got := <-asked; got != proxySecret {
		t.Errorf("the proxy got %q", got)
	}
	if s := w.state(); s.ProxyCredential == nil || !s.ProxyCredential.Leased || s.Upstreams[1].Credential != "corp" {
		t.Errorf("the state is %+v", s)
	}
	b.say(&lease.Revoke{Credential: "corp"})
	w.cut(c, time.Second)
	closed("revoked")
	w.guard.eventually(3, "that there is no credential", func(e event) bool {
		return e.Verdict == "note" && e.Reason == "upstream-proxy" && strings.Contains(e.raw, "has no credential now")
	})
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	for _, e := range w.guard.lines {
		if strings.Contains(e.raw, strings.TrimPrefix(proxySecret, "Basic ")) {
			t.Errorf("an event has the value: %s", e.raw)
		}
	}
}

// A running guard's proxy has the credential that it began with.
func TestProxyCredentialIsFixed(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	p.Version = firewall.PolicyVersion
	p.Proxy, p.ProxyCredential = "http://198.51.100.80:3128", "corp"
	g := newGuard(t, p)
	for _, name := range []string{"", "other"} {
		q := p
		q.ProxyCredential = name
		if _, err := g.Do(t.Context(), control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(&q)}); err == nil || !strings.Contains(err.Error(), "other proxy") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
