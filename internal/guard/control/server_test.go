package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// echo answers with what it understood.
func echo(_ context.Context, r Request) (any, error) {
	if r.Host == "refuse.example" {
		return nil, errors.New("refused")
	}
	return r, nil
}

// listening serves on a socket of its own and dials it.
func listening(t testing.TB, s *Server) func() net.Conn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "control.sock")
	for range 2 { // the second time over a stale one
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	serveAt(t, s, path)
	return func() net.Conn {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(20 * time.Second))
		return c
	}
}

func serveAt(t testing.TB, s *Server, path string) {
	t.Helper()
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Accept(ctx, l) }()
	t.Cleanup(func() { cancel(); <-done })
}

// TestConnect: requests of stdin are answered on stdout until stdin ends; what
// can't be reached is said on stderr.
func TestConnect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	serveAt(t, NewServer(echo), path)
	var out, errs strings.Builder
	in := strings.NewReader(`{"op":"state"}` + "\n" + `{"op":"explain","host":"refuse.example"}` + "\n")
	if code := Connect(path, in, &out, &errs); code != 0 || strings.Count(out.String(), "\n") != 2 || !strings.HasSuffix(out.String(), `{"error":"refused"}`+"\n") || errs.Len() > 0 {
		t.Errorf("code %d, %q, %q", code, out.String(), errs.String())
	}
	out.Reset()
	if code := Connect(path+".gone", strings.NewReader(""), &out, &errs); code != 1 || out.Len() > 0 || !strings.Contains(errs.String(), "control.sock.gone: connect: no such file") {
		t.Errorf("code %d, %q, %q", code, out.String(), errs.String())
	}
}

// TestServerRefuses (B60): what isn't a request gets an error that says why, and
// the next request of the same connection is answered.
func TestServerRefuses(t *testing.T) {
	dial := listening(t, NewServer(echo))
	c := dial()
	r := bufio.NewReader(c)
	for _, x := range []struct{ line, want string }{
		{"", "invalid request"},
		{"hello", "invalid request"},
		{"\x00\xff\xfe", "invalid request"},
		{"[]", "invalid request"},
		{"null", "unknown operation"},
		{"{}", "unknown operation"},
		{`{"op":"stop"}`, `unknown operation "stop"`},
		{`{"op":"state"} {"op":"state"}`, "after top-level value"},
		{`{"op":"state"}x`, "after top-level value"},
		{`{"op":"policy","Policy":{}}`, `unknown field "Policy"`},
		{`{"op":"state","x":1}`, `unknown field "x"`},
		{`{"op":"state","host":"a.example"}`, `state has no field "host"`},
		{`{"op":"learn","reset":true}`, `learn has no field "reset"`},
		{`{"op":"change","rooms":["a"]}`, `change has no field "rooms"`},
		{`{"op":"policy","policy":{`, "invalid request"},
		{`{"op":"learn","for":"soon"}`, "invalid request"},
		{`{"op":"explain","port":70000}`, "invalid request"},
		{`{"op":"explain","host":"refuse.example"}`, "refused"},
		{strings.Repeat("[", 1<<20), "invalid request"},
		{`{"op":"` + strings.Repeat("x", 1<<20) + `"}`, "unknown operation"},
		{`{"op":"policy","policy":"` + strings.Repeat("x", MaxLine) + `"}`, "too long"},
		{`{"op":"state"}` + strings.Repeat(" ", MaxLine), "too long"},
	} {
		go io.WriteString(c, x.line+"\n")
		b, err := r.ReadBytes('\n')
		var a Answer
		if err != nil || json.Unmarshal(b, &a) != nil || !strings.Contains(a.Error, x.want) || a.Result != nil || len(b) > 3*maxError {
			t.Fatalf("%.60s: %.300s %v, want %s", x.line, b, err, x.want)
		}
		io.WriteString(c, `{"op":"learn","for":"90s"}`+"\n")
		if b, err := r.ReadString('\n'); err != nil || b != `{"result":{"op":"learn","for":"1m30s"}}`+"\n" {
			t.Fatalf("after %.60s: %s %v", x.line, b, err)
		}
	}
	// Half a request, and its sender's end: no answer, and nothing was done.
	io.WriteString(c, `{"op":"state"`)
	c.(*net.UnixConn).CloseWrite()
	if b, err := r.ReadString('\n'); err != io.EOF || b != "" {
		t.Errorf("half a request: %q %v", b, err)
	}
}

// TestServerTakesALargePolicy: as large as a policy may be.
func TestServerTakesALargePolicy(t *testing.T) {
	n := 0
	dial := listening(t, NewServer(func(_ context.Context, r Request) (any, error) { n = len(r.Policy); return Applied{Live: 7}, nil }))
	policy := []byte(`"` + strings.Repeat("p", 16<<20-2) + `"`)
	var a Applied
	if err := NewClient(dial()).Do(Request{Op: OpPolicy, Policy: policy}, &a); err != nil || a.Live != 7 || n != len(policy) {
		t.Errorf("%v %+v, %d bytes", err, a, n)
	}
	if err := NewClient(dial()).Do(Request{Op: OpPolicy, Policy: []byte(`"` + strings.Repeat("p", MaxLine) + `"`)}, &a); !errors.Is(err, errTooLong) {
		t.Errorf("a policy that is too large: %v", err)
	}
}

// TestServerStoresNoLongLine (B60): lines of half a GB, from all callers at a
// time, cost the memory of one policy, and not of each.
func TestServerStoresNoLongLine(t *testing.T) {
	dial := listening(t, NewServer(echo))
	const size, callers = 1 << 29, MaxConns
	if testing.Short() {
		t.Skip("sends 4 GB through a socket")
	}
	stop := make(chan struct{})
	var peak uint64
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			var m runtime.MemStats
			runtime.GC() // what is left is in use
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	var wg sync.WaitGroup
	for range callers {
		c := dial()
		c.SetDeadline(time.Now().Add(2 * time.Minute))
		wg.Go(func() {
			io.WriteString(c, `{"op":"policy","policy":"`)
			chunk := []byte(strings.Repeat("x", 1<<20))
			for range size / len(chunk) {
				if _, err := c.Write(chunk); err != nil {
					t.Error(err)
					return
				}
			}
			io.WriteString(c, "\"}\n"+`{"op":"state"}`+"\n")
			r := bufio.NewReader(c)
			for _, want := range []string{"too long", `"op":"state"`} {
				if b, err := r.ReadString('\n'); err != nil || !strings.Contains(b, want) {
					t.Errorf("%.200s %v", b, err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	watch.Wait()
	if peak > 5*MaxLine {
		t.Errorf("%d MiB are in use", peak>>20)
	}
}

// TestServerBoundsCallers: one more than MaxConns is told so, at once, and gets
// his answer when another has gone.
func TestServerBoundsCallers(t *testing.T) {
	dial := listening(t, NewServer(echo))
	state := func(c net.Conn) string {
		fmt.Fprintln(c, `{"op":"state"}`)
		b, _ := bufio.NewReader(c).ReadString('\n')
		return b
	}
	var conns []net.Conn
	for range MaxConns {
		c := dial()
		if s := state(c); !strings.Contains(s, `"op":"state"`) {
			t.Fatal(s)
		}
		conns = append(conns, c)
	}
	for range 50 {
		if s := state(dial()); !strings.Contains(s, "too many connections") {
			t.Fatalf("one more: %q", s)
		}
	}
	conns[0].Close()
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(time.Millisecond) {
		if s := state(dial()); strings.Contains(s, `"op":"state"`) {
			break
		} else if time.Now().After(end) {
			t.Fatalf("when another had gone: %q", s)
		}
	}
}

// TestServerEndsIdleCallers: one more than MaxConns takes the place of the caller
// that is idle for the longest time, and of no other.
func TestServerEndsIdleCallers(t *testing.T) {
	dial := listening(t, NewServer(echo))
	var clients []*Client
	for range MaxConns {
		clients = append(clients, NewClient(dial()))
	}
	ask := func(c *Client) error {
		var r Request
		return c.Do(Request{Op: OpState}, &r)
	}
	for i := range clients { // the first one last
		if err := ask(clients[MaxConns-1-i]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // it is idle once its answer is written
	}
	if err := ask(NewClient(dial())); err == nil {
		t.Error("nobody was idle for long")
	}
	time.Sleep(idleEnough + 100*time.Millisecond)
	if err := ask(NewClient(dial())); err != nil {
		t.Errorf("one more: %v", err)
	}
	for i, c := range clients {
		if err := ask(c); (err != nil) != (i == MaxConns-1) {
			t.Errorf("client %d: %v", i, err)
		}
	}
}

// TestClientSaysWhoRefuses: an error of the guard isn't one of the way to it.
func TestClientSaysWhoRefuses(t *testing.T) {
	dial := listening(t, NewServer(echo))
	c := NewClient(dial())
	var r Request
	refused := new(RefusedError)
	if err := c.Do(Request{Op: OpExplain, Host: "refuse.example"}, &r); !errors.As(err, &refused) || refused.Message != "refused" {
		t.Errorf("%v", err)
	}
	if err := c.Do(Request{Op: OpExplain, Host: "a.example", Port: 443}, &r); err != nil || r.Host != "a.example" || r.Port != 443 {
		t.Errorf("%+v %v", r, err)
	}
	c.Close()
	if err := c.Do(Request{Op: OpState}, &r); err == nil || errors.As(err, &refused) {
		t.Errorf("closed: %v", err)
	}
}
