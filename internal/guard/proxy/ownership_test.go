package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/buffers"
	"github.com/llmdo/workshop/internal/guard/dns"
	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/guard/share"
)

// host is the name that every request of these tests is for.
const host = "a.example.org"

// carrier is a session between a client and an upstream of the test's own.
type carrier struct {
	client, upstream *net.TCPConn
	events           chan events.Event
	done             chan struct{} // closed when the session has ended
}

// carry starts a session whose upstream is dialled already.
func carry(t testing.TB) *carrier {
	t.Helper()
	x, s := prepare(t)
	x.run(s, func() { t.Error("the session panicked") })
	return x
}

// run serves s as accept does.
func (x *carrier) run(s *httpSession, panicked func()) {
	go func() {
		defer close(x.done)
		defer s.c.Close()
		panics.Serve(s.run, panicked)
	}()
}

func prepare(t testing.TB) (*carrier, *httpSession) {
	t.Helper()
	pattern, err := firewall.ParseHostPattern(host)
	if err != nil {
		t.Fatal(err)
	}
	name, _ := pattern.Name()
	p := &policy.Room{Matcher: firewall.RoomPolicy{
		Mode: firewall.Restricted, Allow: []firewall.Rule{{Host: pattern, Ports: []firewall.PortRange{firewall.AllPorts}}},
	}.Compile()}
	x := &carrier{events: make(chan events.Event, 100), done: make(chan struct{})}
	r := &Room{
		Policy: func() *policy.Room { return p }, Pins: &dns.Pins{}, Flows: &Flows{}, Budgets: &Budgets{},
		Report: func(e events.Event) { x.events <- e },
		Dialer: &egress.Dialer{Local: &egress.Local{}}, Resolver: dns.NewResolver(func() []netip.AddrPort { return nil }, nil),
		Large: share.NewPool(1, 1).Room(),
	}
	in, client := testutil.TCPPair(t)
	out, upstream := testutil.TCPPair(t)
	x.client, x.upstream = client, upstream
	to := authority{name: name, port: 80}
	s := &httpSession{
		room: r, ctx: context.Background(), c: in, kind: events.Proxy, orig: netip.AddrPortFrom(netip.Addr{}, 80), only: &to,
		first: &way{room: r, in: in, conn: out, size: buffers.Small},
	}
	t.Cleanup(func() { client.Close(); upstream.Close() })
	return x, s
}

// ended waits for the end of the session.
func (x *carrier) ended(t testing.TB) {
	t.Helper()
	select {
	case <-x.done:
	case <-time.After(20 * time.Second):
		buf := make([]byte, 64<<10)
		t.Fatalf("the session goes on:\n%s", buf[:runtime.Stack(buf, true)])
	}
}

const upgradeLines = "Connection: Upgrade\r\nUpgrade: websocket\r\n"

// TestB60_UpgradeWithBody: an upgrade is a GET without a body (RFC 6455 §4.1).
// With one, the answer could come while the body is still being read.
func TestB60_UpgradeWithBody(t *testing.T) {
	for _, c := range []struct{ name, head, body string }{
		{"chunked", "GET / HTTP/1.1\r\nHost: " + host + "\r\n" + upgradeLines + "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"},
		{"length", "GET / HTTP/1.1\r\nHost: " + host + "\r\n" + upgradeLines + "Content-Length: 1000000\r\n\r\n", "xxxxxx"},
		{"post", "POST / HTTP/1.1\r\nHost: " + host + "\r\n" + upgradeLines + "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"},
		{"post without a body", "POST / HTTP/1.1\r\nHost: " + host + "\r\n" + upgradeLines + "Content-Length: 0\r\n\r\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := carry(t)
			go func() { // answers before the body ends
				if _, err := http.ReadRequest(bufio.NewReader(x.upstream)); err == nil {
					io.WriteString(x.upstream, "HTTP/1.1 101 Switching Protocols\r\n"+upgradeLines+"\r\n")
					io.Copy(io.Discard, x.upstream)
				}
			}()
			io.WriteString(x.client, c.head)
			go func() {
				for range 2000 {
					if _, err := io.WriteString(x.client, c.body); err != nil {
						return
					}
				}
			}()
			resp, err := http.ReadResponse(bufio.NewReader(x.client), nil)
			if err != nil || resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%+v, %v, want 400", resp, err)
			}
			x.client.Close()
			x.ended(t)
			if e := <-x.events; e.Verdict != events.Deny || e.Reason != events.ReasonMalformed {
				t.Errorf("event: %+v", e)
			}
		})
	}
}

// TestB60_EveryPoint: each side resets after every byte of an exchange, while
// the other one is slow or fast; the session ends, and nothing of it goes on.
func TestB60_EveryPoint(t *testing.T) {
	before := runtime.NumGoroutine()
	const head = "Host: " + host + "\r\n"
	for _, c := range []struct{ name, request, response string }{
		{"chunked", "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		{"pipelined", "PUT / HTTP/1.1\r\n" + head + "Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n" + head + "\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 204 No Content\r\n\r\n"},
		{"upgrade", "GET / HTTP/1.1\r\n" + head + upgradeLines + "\r\nframes", "HTTP/1.1 101 Switching Protocols\r\n" + upgradeLines + "\r\nframes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for at := 0; at <= len(c.request); at++ {
				x := carry(t)
				go io.WriteString(x.upstream, c.response) // before it was asked
				io.WriteString(x.client, c.request[:at])
				reset(x.client)
				x.ended(t)
				x.upstream.Close()
			}
			for at := 0; at <= len(c.response); at++ {
				x := carry(t)
				go io.WriteString(x.client, c.request)
				x.upstream.Read(make([]byte, 1))
				io.WriteString(x.upstream, c.response[:at])
				reset(x.upstream)
				_, _ = io.Copy(io.Discard, io.LimitReader(x.client, int64(at)))
				x.client.Close()
				x.ended(t)
			}
		})
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// TestB60_EarlyAnswers: a final answer that comes before the request's end is
// carried whole, the rest of the request isn't read as another one, and the
// connection ends. Answers that nobody asked for are no answer to what follows.
func TestB60_EarlyAnswers(t *testing.T) {
	t.Run("final", func(t *testing.T) {
		x := carry(t)
		body := strings.Repeat("x", 1<<20)
		go func() {
			http.ReadRequest(bufio.NewReader(x.upstream))
			io.WriteString(x.upstream, "HTTP/1.1 413 Too Large\r\nContent-Length: 1048576\r\n\r\n"+body)
		}()
		io.WriteString(x.client, "POST / HTTP/1.1\r\nHost: "+host+"\r\nTransfer-Encoding: chunked\r\n\r\n")
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			for {
				if _, err := io.WriteString(x.client, "1\r\nx\r\n"); err != nil {
					return
				}
			}
		}()
		resp, err := http.ReadResponse(bufio.NewReader(x.client), nil)
		if err != nil || resp.StatusCode != 413 || !resp.Close {
			t.Fatalf("%+v, %v", resp, err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != body {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		x.client.Close()
		<-stop
		x.ended(t)
	})
	t.Run("interim", func(t *testing.T) {
		x := carry(t)
		go func() {
			http.ReadRequest(bufio.NewReader(x.upstream))
			io.WriteString(x.upstream, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", maxInformational)+"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}()
		io.WriteString(x.client, "POST / HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: 1\r\n\r\n")
		br := bufio.NewReader(x.client)
		for range maxInformational {
			if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 103 {
				t.Fatalf("%+v, %v", resp, err)
			}
		}
		x.client.Write([]byte("x"))
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%+v, %v", resp, err)
		}
		x.client.Close()
		x.ended(t)
	})
	t.Run("unasked", func(t *testing.T) {
		x := carry(t)
		go func() {
			http.ReadRequest(bufio.NewReader(x.upstream))
			io.WriteString(x.upstream, strings.Repeat("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 2))
		}()
		io.WriteString(x.client, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		br := bufio.NewReader(x.client)
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%+v, %v", resp, err)
		}
		// The next request isn't sent over that connection: no name resolves here.
		io.WriteString(x.client, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 502 {
			t.Fatalf("%+v, %v", resp, err)
		}
		x.client.Close()
		x.ended(t)
	})
}

// TestB60_ResetBeforeAccepted: a published port leads to a server that resets at
// once: the connection has no peer any more when its address is asked for.
func TestB60_ResetBeforeAccepted(t *testing.T) {
	in, client := testutil.TCPPair(t)
	out, server := testutil.TCPPair(t)
	reset(server)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		raw, err := out.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) { _, err = unix.Getpeername(int(fd)) })
		if errors.Is(err, unix.ENOTCONN) {
			break
		}
	}
	f, err := out.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	out.Close()
	if c.RemoteAddr() != nil {
		t.Fatalf("the control: it still has the peer %v", c.RemoteAddr())
	}
	r := &Room{Policy: func() *policy.Room { return &policy.Room{} }, Flows: &Flows{}, Budgets: &Budgets{}, Report: func(events.Event) {}}
	r.Join(t.Context(), in, c.(*net.TCPConn), netip.MustParseAddrPort("127.0.0.1:8080"))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("the client: %v", err)
	}
}
