package egress

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/leases"
)

// upstream starts a proxy that answers every CONNECT by f.
func upstream(t *testing.T, f func(c net.Conn, req *http.Request)) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go testnet.Serve(l, func(c net.Conn) {
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			f(c, req)
		}
	})
	p, err := NewProxy(NewUpstream(&Local{}), "http://user:secret@"+l.Addr().String(), OfUser)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestProxyIsBounded is P4 and B60: whatever the upstream proxy answers, the
// guard waits and reads no more than it has to, and says nothing of the
// credentials.
func TestProxyIsBounded(t *testing.T) {
	to := netip.MustParseAddrPort("[2001:db8::1]:443")
	for name, c := range map[string]struct{ answer, want string }{
		"407":              {"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n", "refuses CONNECT with 407: it wants credentials"},
		"garbage":          {strings.Repeat("\x16\x03\x01 ", 5000), "isn't HTTP"},
		"another protocol": {"SSH-2.0-x\r\n\r\n", "isn't HTTP"},
		"an early end":     {"HTTP/1.1 200", "doesn't answer CONNECT: connection closed"},
		"nothing":          {"", "doesn't answer CONNECT: connection closed"},
		"endless headers":  {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 10_000), "isn't HTTP"},
		"an endless line":  {"HTTP/1.1 200 " + strings.Repeat("a", 100_000), "isn't HTTP"},
		"a redirection":    {"HTTP/1.1 302 Found\r\nLocation: http://evil.example.net/\r\n\r\n", "refuses CONNECT with 302"},
		"200 within":       {"HTTP/1.1 403 200\r\n\r\n", "403"},
		"a long status":    {"HTTP/1.1 500 " + strings.Repeat("b", 10_000) + "\r\n\r\n", "500"},
	} {
		p := upstream(t, func(conn net.Conn, _ *http.Request) { io.WriteString(conn, c.answer) })
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		conn, _, err := p.connect(ctx, to)
		cancel()
		if conn != nil || err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		} else if s := err.Error(); strings.Contains(s, "secret") || strings.Contains(s, p.auth) {
			t.Errorf("%s: the error has the credentials: %v", name, err)
		}
	}
}

// A proxy that says nothing, or one byte now and then, is waited for no longer
// than a dial may take.
func TestProxyThatStalls(t *testing.T) {
	p := upstream(t, func(c net.Conn, _ *http.Request) {
		for {
			if _, err := c.Write([]byte("x")); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	start := testutil.Now()
	if _, _, err := p.connect(ctx, netip.MustParseAddrPort("198.51.100.1:443")); err == nil {
		t.Error("connected")
	}
	if d := testutil.Since(start); d > 2*time.Second {
		t.Errorf("after %s", d)
	}
}

// The proxy is asked for the address, never for a name; what follows its answer
// is the tunnel's.
func TestProxyGetsTheAddress(t *testing.T) {
	asked := make(chan *http.Request, 1)
	p := upstream(t, func(c net.Conn, req *http.Request) {
		asked <- req
		io.WriteString(c, "HTTP/1.1 200 ok\r\nX: y\r\n\r\nfirst words")
	})
	c, _, err := p.connect(context.Background(), netip.MustParseAddrPort("[2001:db8::1]:443"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, _ := io.ReadAll(c); string(b) != "first words" {
		t.Errorf("%q", b)
	}
	req := <-asked
	if req.Method != "CONNECT" || req.RequestURI != "[2001:db8::1]:443" || req.Host != "[2001:db8::1]:443" || req.Header.Get("Proxy-Authorization") != "Basic dXNlcjpzZWNyZXQ=" {
		t.Errorf("%+v", req)
	}
}

// credentialed is a proxy with a credential, and what leases its value.
func credentialed(t *testing.T, lasting time.Duration, f func(c net.Conn, req *http.Request)) (*Proxy, *leases.Store, lease.Line) {
	t.Helper()
	p := upstream(t, f)
	p.auth = ""
	line := lease.Line{Host: "127.0.0.1", Port: p.Port, Credential: "corp", Rule: "0123456789abcdef"}
	s := leases.NewStore(lasting, []lease.Line{line})
	p.Lease = func() *leases.Held { return s.Take(line) }
	return p, s, line
}

func proxyLease(l lease.Line, password string) *lease.Lease {
	text := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+password))
	return &lease.Lease{Line: l, Generation: 1, Header: lease.ProxyHeader, Value: lease.Value(text)}
}

// A proxy with a credential gets it with each CONNECT, and without it no packet: before it is
// leased, after it was revoked, also while the proxy is connected to, and when its time is over.
func TestProxyCredential(t *testing.T) {
	to := netip.MustParseAddrPort("198.51.100.1:443")
	asked := make(chan string, 10)
	p, s, line := credentialed(t, time.Second, func(c net.Conn, req *http.Request) {
		asked <- req.Header.Get("Proxy-Authorization")
		io.WriteString(c, "HTTP/1.1 200 ok\r\n\r\n")
		io.Copy(io.Discard, c)
	})
	closed := func(when string) {
		t.Helper()
		c, _, err := p.connect(t.Context(), to)
		if failed := new(ProxyError); c != nil || !errors.As(err, &failed) || failed.What != "has no credential now: the person can run `workshop up`" {
			t.Errorf("%s: %v", when, err)
		}
		select {
		case got := <-asked:
			t.Errorf("%s: the proxy was asked, with %q", when, got)
		case <-time.After(50 * time.Millisecond):
		}
	}
	open := func(want string) func() bool {
		t.Helper()
		c, revoked, err := p.connect(t.Context(), to)
		if err != nil || revoked == nil || revoked() {
			t.Fatalf("%v", err)
		}
		t.Cleanup(func() { c.Close() })
		if got := <-asked; got != want {
			t.Errorf("the proxy got %q, want %q", got, want)
		}
		return revoked
	}
	closed("before it is leased")
	s.Put(proxyLease(line, "one"))
	before := open("Basic dXNlcjpvbmU=")
	s.Revoke("corp")
	closed("revoked")
	if !before() {
		t.Error("what it carries isn't known to have a credential that was revoked")
	}
	s.Put(proxyLease(line, "two"))
	open("Basic dXNlcjp0d28=")
	leased := p.Lease
	p.Lease = func() *leases.Held {
		h := leased()
		s.Revoke("corp")
		return h
	}
	closed("revoked while it is connected to")
	p.Lease = leased
	s.Put(proxyLease(line, "three"))
	time.Sleep(1100 * time.Millisecond)
	closed("its time is over")
}

// A proxy that doesn't take its credential is told to who leases it, as a host is that answers
// 401, and to the worker without a word of the proxy's.
func TestProxyRefusesItsCredential(t *testing.T) {
	p, s, line := credentialed(t, time.Minute, func(c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 407 canary-5d\r\nProxy-Authenticate: Basic realm=canary-5d\r\n\r\n")
	})
	here, there := net.Pipe()
	defer here.Close()
	go s.Serve(there, func() {})
	r := lease.NewReader(here)
	if _, err := r.FromGuard(); err != nil {
		t.Fatal(err)
	}
	s.Put(proxyLease(line, "wrong"))
	for range 3 {
		_, _, err := p.connect(t.Context(), netip.MustParseAddrPort("198.51.100.1:443"))
		if err == nil || !strings.HasSuffix(err.Error(), " refuses CONNECT with 407: it doesn't take its credential") {
			t.Errorf("%v", err)
		}
	}
	here.SetReadDeadline(time.Now().Add(5 * time.Second))
	if m, err := r.FromGuard(); err != nil || *m.(*lease.Refused) != (lease.Refused{Credential: "corp", Generation: 1}) {
		t.Errorf("%+v, %v", m, err)
	}
	here.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if m, err := r.FromGuard(); err == nil {
		t.Errorf("told again: %+v", m)
	}
}
