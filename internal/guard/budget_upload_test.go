package guard

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// meter counts the bytes that arrive at a server, exactly.
type meter struct {
	net.Listener
	bytes atomic.Int64
}

func (w *world) meter(addr string) *meter {
	w.Helper()
	m := &meter{}
	if err := w.in.NS().Do(func() (err error) { m.Listener, err = net.Listen("tcp", addr); return err }); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { m.Close() })
	return m
}

func (m *meter) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	return &metered{c, m}, err
}

type metered struct {
	net.Conn
	m *meter
}

func (c *metered) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.m.bytes.Add(int64(n))
	return n, err
}

// drink takes what comes on every connection.
func (m *meter) drink() {
	for {
		c, err := m.Accept()
		if err != nil {
			return
		}
		go func() { io.Copy(io.Discard, c); c.Close() }()
	}
}

// exactly waits until n bytes have arrived, and that no more do.
func (w *world) exactly(m *meter, n int64) {
	w.Helper()
	for end := time.Now().Add(8 * time.Second); m.bytes.Load() < n && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	time.Sleep(100 * time.Millisecond)
	if got := m.bytes.Load(); got != n {
		w.Errorf("%d bytes arrived, want exactly %d", got, n)
	}
}

func budgeted(t testing.TB, lines ...string) firewall.Policy {
	t.Helper()
	var plain, budgets []string
	for _, l := range lines {
		line, budget, _ := strings.Cut(l, " upload ")
		plain, budgets = append(plain, line), append(budgets, budget)
	}
	p := restricted(t, plain...)
	for i, b := range budgets {
		if b != "" {
			var err error
			if p.Rooms[0].Allow[i].Upload, err = firewall.ParseBudget(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

func usedUp(line string) func(event) bool {
	return func(e event) bool {
		return e.Verdict == "deny" && e.Reason == "upload-budget" && e.Rule == line && e.Suggest == ""
	}
}

// TestUploadBudget: all connections of a rule share what it lets out, and not a
// byte more leaves; those that run are reset, new ones refused.
func TestUploadBudget(t *testing.T) {
	w := newWorld(t, budgeted(t, "198.51.100.192/26:9000", "198.51.100.128/26:7000 upload 200K/h"))
	m := w.meter("198.51.100.150:7000")
	go m.drink()
	other := w.mustDial("room", "tcp", "198.51.100.200:9000")
	conns := make([]net.Conn, 5)
	for i := range conns {
		conns[i] = w.mustDial("room", "tcp", "198.51.100.150:7000")
		io.WriteString(conns[i], "hello")
	}
	w.exactly(m, 25) // all are carried now
	idle := conns[0]
	var wg sync.WaitGroup
	for _, c := range conns[1:] {
		wg.Go(func() {
			for {
				if _, err := c.Write(make([]byte, 1777)); err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if _, err := idle.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("one that ran: %v, not reset", err)
	}
	w.exactly(m, 200<<10)
	w.refused("room", "198.51.100.151:7000")
	w.guard.eventually(6, "ends and a refusal by the budget", usedUp("workshop.yaml:11"))
	w.guard.eventually(5, "ends", func(e event) bool { return e.Verdict == "end" && e.Port == 7000 })
	up := 0
	w.guard.count(func(e event) bool { up += e.BytesUp; return true })
	if up != 200<<10 {
		t.Errorf("ends say %d bytes", up)
	}
	io.WriteString(other, "ping")
	if _, err := io.ReadFull(other, make([]byte, 4)); err != nil {
		t.Errorf("a connection of another rule: %v", err)
	}
	w.schema()
}

// What comes back isn't bounded.
func TestBudgetIsForUploads(t *testing.T) {
	w := newWorld(t, budgeted(t, "allowed.example.org upload 2K/d"))
	c := w.mustDial("room", "tcp", testnet.Allowed+":80")
	io.WriteString(c, "GET /bytes/3000000 HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, resp.Body); n != 3_000_000 || err != nil {
		t.Errorf("%d %v", n, err)
	}
}

// TestUploadBudgetHTTP: heads and bodies count; a person is told what the budget
// is and when it is free again.
func TestUploadBudgetHTTP(t *testing.T) {
	w := newWorld(t, budgeted(t, "up.example.org:8080 upload 10K/h", "allowed.example.org:80 upload 4K/m", "tunnel.example.org:7000 upload 1K/d"))
	w.in.Answer("up.example.org", testnet.A("198.51.100.130"))
	w.in.Answer("tunnel.example.org", testnet.A("198.51.100.131"))
	m := w.meter("198.51.100.130:8080")
	srv := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })}
	go srv.Serve(m)
	defer srv.Close()

	told := func(resp *http.Response, budget string) {
		t.Helper()
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 403 || resp.Header.Get("X-Workshop-Deny") != "upload-budget" || resp.Header.Get("X-Workshop-Allow") != "" ||
			resp.Header.Get("Retry-After") == "" || !strings.Contains(string(b), budget) || !strings.Contains(string(b), "free again in") || strings.Contains(string(b), "firewall allow") {
			t.Errorf("%s %v\n%s", resp.Status, resp.Header, b)
		}
	}
	post := func(c net.Conn, br *bufio.Reader, url, host string, size int, chunked bool) *http.Response {
		t.Helper()
		req, _ := http.NewRequest("POST", url, io.LimitReader(zeros{}, int64(size)))
		req.Host = host
		if chunked {
			req.TransferEncoding = []string{"chunked"}
		} else {
			req.ContentLength = int64(size)
		}
		if err := req.WriteProxy(c); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(br, req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	// Keep-alive, by the explicit proxy: at the fourth request it's used up.
	c := w.mustDial("room", "tcp", explicitAddr)
	br := bufio.NewReader(c)
	for i := range 4 {
		resp := post(c, br, "http://up.example.org:8080/", "", 3000, i%2 == 1)
		if i < 3 && resp.StatusCode != 200 {
			t.Fatalf("request %d: %s", i, resp.Status)
		} else if i == 3 {
			told(resp, "10K/h")
		}
	}
	w.exactly(m, 10<<10)
	c = w.mustDial("room", "tcp", explicitAddr)
	told(post(c, bufio.NewReader(c), "http://up.example.org:8080/", "", 1, false), "10K/h")
	w.exactly(m, 10<<10)
	w.guard.eventually(2, "the budget of HTTP", usedUp("workshop.yaml:10"))

	// Port 80, transparently; two connections, and both are told.
	for range 2 {
		c = w.mustDial("room", "tcp", testnet.Allowed+":80")
		told(post(c, bufio.NewReader(c), "/", "allowed.example.org", 5000, false), "4K/m")
	}

	// A tunnel.
	m = w.meter("198.51.100.131:7000")
	go m.drink()
	connect := func() (net.Conn, *http.Response) {
		c := w.mustDial("room", "tcp", explicitAddr)
		io.WriteString(c, "CONNECT tunnel.example.org:7000 HTTP/1.1\r\nHost: tunnel.example.org:7000\r\n\r\n")
		req, _ := http.NewRequest("CONNECT", "http://x", nil)
		resp, err := http.ReadResponse(bufio.NewReader(c), req)
		if err != nil {
			t.Fatal(err)
		}
		return c, resp
	}
	c, resp := connect()
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	c.Write(make([]byte, 1025))
	if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a tunnel whose budget is used up: %v", err)
	}
	w.exactly(m, 1024)
	_, resp = connect()
	told(resp, "1K/d")
}

// TestUploadBudgetTLS: the hello counts, and what is encrypted; 443 says it by an
// alert.
func TestUploadBudgetTLS(t *testing.T) {
	w := newWorld(t, budgeted(t, "allowed.example.org:443 upload 8K/h"))
	c, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: allowed.example.org\r\nContent-Length: 100000\r\n\r\n")
	for err == nil {
		_, err = c.Write(make([]byte, 1000))
	}
	start := testutil.Now()
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("a new one: %v", err)
	}
	if d := testutil.Since(start); d > time.Second {
		t.Errorf("refused after %s", d)
	}
	w.guard.eventually(2, "the budget", usedUp("workshop.yaml:10"))
	w.guard.eventually(1, "the end", func(e event) bool { return e.Verdict == "end" && e.Kind == "tls" && e.BytesUp == 8<<10 })
}
