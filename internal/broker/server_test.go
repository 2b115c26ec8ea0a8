package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/leases"
)

// serve runs a broker with a real store of leases, whose guard can end.
func serve(t *testing.T, s *Server, more ...lease.Line) (socket string, guard *atomic.Pointer[leases.Store], cut func(), ended chan error) {
	t.Helper()
	guard = &atomic.Pointer[leases.Store]{}
	var end atomic.Pointer[net.Conn]
	guard.Store(leases.NewStore(lease.Lasting, append([]lease.Line{git, api}, more...)))
	s.Attach = func(context.Context) (io.ReadWriteCloser, error) {
		store := guard.Load()
		if store == nil {
			return nil, errors.New("no guard")
		}
		host, c := net.Pipe()
		end.Store(&c)
		go func() { store.Serve(c, func() {}); c.Close() }()
		return host, nil
	}
	if s.Gone == nil {
		s.Gone = func() bool { return false }
	}
	if s.Idle == 0 {
		s.Idle = time.Minute
	}
	s.Log = log.New(t.Output(), "", 0)
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- s.Run(ctx, l) }()
	t.Cleanup(cancel)
	return socket, guard, func() { (*end.Load()).Close() }, ended
}

func taken(store *leases.Store, l lease.Line) string {
	h := store.Take(l)
	if h == nil {
		return "none"
	}
	defer h.Release()
	var b strings.Builder
	_ = h.WriteHeader(&b)
	return strings.TrimSpace(b.String())
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: it never is", what)
}

// What is read reaches the guard, also after the guard's end, and goes when what may be
// leased does: at the answer to OpLook.
func TestServe(t *testing.T) {
	forge := of("forge", 0, "git.example", "api.git.example")
	var allowed atomic.Pointer[Allowed]
	allowed.Store(&Allowed{git: forge, api: forge})
	var used atomic.Pointer[Use]
	reads := atomic.Int32{}
	s := &Server{
		Use:     func(u Use) error { used.Store(&u); return nil },
		Allowed: func() (Allowed, error) { return *allowed.Load(), nil },
		Read: func(context.Context, credential.Credential) (Value, error) {
			reads.Add(1)
			return Value{Secret: []byte("canary")}, nil
		},
	}
	socket, guard, cut, ended := serve(t, s)
	waitFor(t, "leased", func() bool {
		return taken(guard.Load(), git) == "Authorization: Bearer canary" && taken(guard.Load(), api) != "none"
	})
	ask := func(q Request) Answer {
		t.Helper()
		a, err := Call(t.Context(), socket, q)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask(Request{Op: OpStatus}); !a.Attached || len(a.Credentials) != 1 || a.Credentials[0] != (Status{Name: "forge", Source: "file /forge", State: Leased, Lines: 2}) {
		t.Errorf("%+v", a)
	}
	guard.Store(leases.NewStore(lease.Lasting, []lease.Line{git}))
	cut()
	waitFor(t, "leased to another guard", func() bool { return taken(guard.Load(), git) != "none" })
	if n := reads.Load(); n != 1 {
		t.Errorf("read %d times", n)
	}
	held := guard.Load().Take(git)
	allowed.Store(&Allowed{})
	ask(Request{Op: OpLook})
	waitFor(t, "revoked", func() bool { return held.Revoked() && taken(guard.Load(), git) == "none" })
	ask(Request{Op: OpUse, Use: &Use{Directory: "/p", File: "/f", Lines: []Line{{Line: git, Consents: []string{"c"}}}, Values: map[string]string{"A": "b"}}})
	if u := used.Load(); u.Directory != "/p" || u.Values["A"] != "b" || u.Lines[0].At != "git" || u.Lines[0].Consents[0] != "c" {
		t.Errorf("%+v", u)
	}
	ask(Request{Op: OpStop})
	if err := <-ended; !IsStop(err) {
		t.Error(err)
	}
	if _, err := Call(t.Context(), socket, Request{Op: OpStatus}); err == nil {
		t.Error("it answers after its end")
	}
}

// What can't be known isn't leased, and a broker that nobody needs ends.
func TestServeEnds(t *testing.T) {
	failing := &Server{
		Use: func(Use) error { return nil }, Allowed: func() (Allowed, error) { return Allowed{git: of("forge", 0, "git.example")}, errors.New("unreadable") },
		Read: func(context.Context, credential.Credential) (Value, error) {
			t.Error("it is read")
			return Value{}, nil
		},
		Gone: func() bool { return true },
	}
	socket, _, _, ended := serve(t, failing)
	waitFor(t, "attached", func() bool {
		a, err := Call(t.Context(), socket, Request{Op: OpStatus})
		return err == nil && a.Attached && a.Problem == "unreadable" && len(a.Credentials) == 0
	})
	if err := <-ended; err != nil {
		t.Error(err)
	}
	alone := &Server{Use: failing.Use, Allowed: failing.Allowed, Read: failing.Read, Idle: time.Millisecond}
	_, guard, cut, ended := serve(t, alone)
	waitFor(t, "attached", func() bool { defer func() { _ = recover() }(); cut(); return true })
	guard.Store(nil)
	if err := <-ended; !errors.Is(err, ErrIdle) {
		t.Error(err)
	}
}

// slowGuard is a connection to a guard that takes a while for each message.
type slowGuard struct {
	io.ReadCloser
	took atomic.Int32
	each time.Duration
}

func (g *slowGuard) Write(b []byte) (int, error) {
	time.Sleep(g.each)
	g.took.Add(1)
	return len(b), nil
}

// B60: a guard that takes its messages slowly can't keep the broker from anything else.
func TestSlowGuard(t *testing.T) {
	allowed, lines := Allowed{}, []lease.Line{}
	for i := range 50 {
		l := line(fmt.Sprintf("at-%d", i), "git.example", "forge")
		allowed[l], lines = of("forge", 0, "git.example"), append(lines, l)
	}
	g := &slowGuard{each: 50 * time.Millisecond}
	reads, says := io.Pipe()
	g.ReadCloser = reads
	var once atomic.Bool
	s := &Server{
		Use: func(Use) error { return nil }, Allowed: func() (Allowed, error) { return allowed, nil },
		Read: func(context.Context, credential.Credential) (Value, error) { return Value{Secret: []byte("x")}, nil },
		Attach: func(context.Context) (io.ReadWriteCloser, error) {
			if once.Swap(true) {
				return nil, errors.New("no guard")
			}
			return g, nil
		},
		Gone: func() bool { return false }, Idle: time.Minute, Log: log.New(t.Output(), "", 0), late: 200 * time.Millisecond,
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { _ = s.Run(ctx, l) }()
	if err := lease.Write(says, &lease.Lines{Lines: lines}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the connection has ended", func() bool {
		a, err := Call(t.Context(), socket, Request{Op: OpStatus})
		return err == nil && g.took.Load() > 0 && !a.Attached
	})
	if n := g.took.Load(); n > 10 {
		t.Errorf("%d messages were sent", n)
	}
}

// A request that isn't whole is refused, and nothing of it is said.
func TestRequests(t *testing.T) {
	for _, text := range []string{
		"", "{", `{"version":2,"op":"status"}`, `{"version":1,"op":"canary"}`, `{"version":1,"op":"status","canary":1}`, `{"version":1,"op":"use"}`,
		`{"version":1,"op":"stop","use":{"directory":"canary"}}`, `{"version":1,"op":"status"} {}`, `{"version":1,"op":"use","use":{"values":{"A":["canary"]}}}`,
	} {
		if q, err := ParseRequest([]byte(text)); err == nil || strings.Contains(err.Error(), "canary") || q.Use != nil {
			t.Errorf("%s: %+v, %v", text, q, err)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"version":1,"op":"use","use":{"directory":"/p","file":"/f","lines":[{"room":"r","at":"a","host":"h","port":443,"credential":"c","consents":["x"]}],"values":{"A":"b"}}}`))
	f.Add([]byte(`{"version":1,"op":"look"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := ParseRequest(b)
		if err == nil && (q.Version != Version || (q.Op == OpUse) != (q.Use != nil)) {
			t.Errorf("%+v", q)
		}
	})
}
