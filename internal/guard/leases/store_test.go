package leases

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/guard/lease"
)

const canary = "canary-b6a1f0"

var (
	github = line("room", "github", "github.com", "github")
	api    = line("room", "github-api", "api.github.com", "github")
	npm    = line("room", "npm", "npm.example", "npm")
	other  = line("other", "github", "github.com", "github")
)

func line(room, at, host, credential string) lease.Line {
	return lease.Line{Room: room, At: at, Host: host, Port: 443, Credential: credential, Rule: "0123456789abcdef"}
}

func leaseOf(l lease.Line, generation uint64, value string) *lease.Lease {
	return &lease.Lease{Line: l, Generation: generation, Header: "Authorization", Value: lease.Value(value)}
}

func header(t testing.TB, h *Held) string {
	t.Helper()
	if h == nil {
		return "none"
	}
	defer h.Release()
	var b strings.Builder
	if err := h.WriteHeader(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// B32: a value is there for the very line that it was sent for, and for no other (attack 5).
func TestStore(t *testing.T) {
	s := NewStore(lease.Lasting, []lease.Line{github, api, npm, other})
	s.Put(leaseOf(github, 1, "Bearer a"))
	if got := header(t, s.Take(github)); got != "Authorization: Bearer a\r\n" {
		t.Errorf("got %q", got)
	}
	elsewhere := github
	elsewhere.Host = "evil.example"
	foreign := leaseOf(elsewhere, 1, "Bearer "+canary)
	s.Put(foreign)
	if bytes.ContainsAny(foreign.Value, canary) {
		t.Error("a value for a line that there isn't is kept")
	}
	for _, l := range []lease.Line{api, npm, other, elsewhere} {
		if h := s.Take(l); h != nil {
			t.Errorf("%+v has %q", l, header(t, h))
		}
	}
	first := s.Take(github)
	defer first.Release()
	s.Put(leaseOf(github, 1, "Bearer a"))
	if h := s.Take(github); h.ID != first.ID {
		t.Error("a renewal is another value")
	}
	for _, change := range []func(*lease.Lease){
		func(m *lease.Lease) { m.Generation = 2 }, func(m *lease.Lease) { m.Value = lease.Value("Bearer b") }, func(m *lease.Lease) { m.Header = "X-Api-Key" }, func(m *lease.Lease) { m.Roots = [][]byte{{1}} },
		func(m *lease.Lease) { m.AskPush = true },
	} {
		s.Put(leaseOf(github, 1, "Bearer a"))
		before := s.Take(github)
		m := leaseOf(github, 1, "Bearer a")
		change(m)
		s.Put(m)
		if h := s.Take(github); h.ID == before.ID || h.Header != m.Header || h.Generation != m.Generation || (h.Roots == nil) != (m.Roots == nil) {
			t.Errorf("%+v: %+v", m, h)
		}
	}
}

// A value is cleared when it is forgotten: at once, or after its last use.
func TestStoreForgets(t *testing.T) {
	for _, c := range []struct {
		name   string
		forget func(*Store)
	}{
		{"revoked", func(s *Store) { s.Revoke("github") }},
		{"another one", func(s *Store) { s.Put(leaseOf(github, 2, "Bearer b")) }},
		{"the line is gone", func(s *Store) { s.SetLines([]lease.Line{api}) }},
		{"the line has another credential", func(s *Store) { l := github; l.Credential = "npm"; s.SetLines([]lease.Line{l}) }},
		{"its time is over", func(*Store) { time.Sleep(300 * time.Millisecond) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewStore(200*time.Millisecond, []lease.Line{github})
			m := leaseOf(github, 1, canary)
			s.Put(m)
			h := s.Take(github)
			c.forget(s)
			if string(m.Value) != canary {
				t.Errorf("cleared while it is used: %q", []byte(m.Value))
			}
			if now := s.Take(github); now != nil && now.ID == h.ID {
				t.Error("it is there")
			}
			h.Release()
			if !bytes.Equal(m.Value, make([]byte, len(canary))) {
				t.Errorf("it isn't cleared: %q", []byte(m.Value))
			}
			unused := NewStore(200*time.Millisecond, []lease.Line{github})
			m = leaseOf(github, 1, canary)
			unused.Put(m)
			c.forget(unused)
			unused.mu.Lock()
			defer unused.mu.Unlock()
			if !bytes.Equal(m.Value, make([]byte, len(canary))) {
				t.Errorf("unused, it isn't cleared: %q", []byte(m.Value))
			}
		})
	}
}

// Each line is said with whether it has a value now.
func TestStoreEach(t *testing.T) {
	s := NewStore(100*time.Millisecond, []lease.Line{github, npm})
	s.Put(leaseOf(npm, 1, "Bearer a"))
	each := func() string {
		var b strings.Builder
		s.Each(func(l lease.Line, leased bool) { fmt.Fprint(&b, l.At, " ", leased, "\n") })
		return b.String()
	}
	if got := each(); got != "github false\nnpm true\n" {
		t.Errorf("%q", got)
	}
	time.Sleep(150 * time.Millisecond)
	if got := each(); got != "github false\nnpm false\n" {
		t.Errorf("after its time: %q", got)
	}
}

// A lease that is renewed lasts.
func TestStoreRenews(t *testing.T) {
	s := NewStore(time.Second, []lease.Line{github})
	for range 6 {
		s.Put(leaseOf(github, 1, "Bearer a"))
		time.Sleep(300 * time.Millisecond)
	}
	if h := s.Take(github); h == nil || h.ID != 1 {
		t.Errorf("%+v", h)
	}
}

// What was revoked says so, also when its value is forgotten; what is leased after that
// doesn't.
func TestStoreRevokes(t *testing.T) {
	s := NewStore(lease.Lasting, []lease.Line{github, api, npm})
	s.Put(leaseOf(github, 1, "Bearer a"))
	old := s.Take(github)
	s.Put(leaseOf(github, 2, "Bearer b"))
	s.Put(leaseOf(npm, 1, "Bearer c"))
	now, beside := s.Take(github), s.Take(npm)
	s.Revoke("nobody")
	if old.Revoked() || now.Revoked() {
		t.Error("revoked by another name")
	}
	s.Revoke("github")
	if !old.Revoked() || !now.Revoked() || beside.Revoked() {
		t.Errorf("%v %v %v, want true, true, false", old.Revoked(), now.Revoked(), beside.Revoked())
	}
	s.Put(leaseOf(github, 3, "Bearer d"))
	if s.Take(github).Revoked() {
		t.Error("leased after it")
	}
}

// broker is the host's end of a store's connection.
func broker(t testing.TB, s *Store) (c net.Conn, r *lease.Reader, revoked chan bool, ended chan bool) {
	t.Helper()
	c, guard := net.Pipe()
	revoked, ended = make(chan bool, 10), make(chan bool)
	go func() { defer close(ended); s.Serve(guard, func() { revoked <- true }); guard.Close() }()
	t.Cleanup(func() { c.Close(); <-ended })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	return c, lease.NewReader(c), revoked, ended
}

func expect(t testing.TB, r *lease.Reader, want any) {
	t.Helper()
	m, err := r.FromGuard()
	if diff := cmp.Diff(want, m); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestServe: the broker hears the lines when it attaches and when they change, and its
// messages are carried out until it goes; what it leased then lasts.
func TestServe(t *testing.T) {
	s := NewStore(lease.Lasting, []lease.Line{github, npm})
	c, r, revoked, ended := broker(t, s)
	expect(t, r, &lease.Lines{Lines: []lease.Line{github, npm}})
	s.SetLines([]lease.Line{github})
	expect(t, r, &lease.Lines{Lines: []lease.Line{github}})
	if err := errors.Join(lease.Write(c, leaseOf(github, 1, "Bearer a")), lease.Write(c, &lease.Revoke{Credential: "npm"})); err != nil {
		t.Fatal(err)
	}
	<-revoked
	if got := header(t, s.Take(github)); !strings.Contains(got, "Bearer a") {
		t.Errorf("got %s", got)
	}
	second, guard := net.Pipe()
	defer second.Close()
	s.Serve(guard, nil) // returns: there is one
	io.WriteString(c, `{"type":"lease"}`+"\n")
	<-ended
	if got := header(t, s.Take(github)); !strings.Contains(got, "Bearer a") {
		t.Errorf("after the broker's end: %s", got)
	}
	_, r, _, _ = broker(t, s)
	expect(t, r, &lease.Lines{Lines: []lease.Line{github}})
}

// TestServeRefused: once a minute for each credential, and never for what was revoked.
func TestServeRefused(t *testing.T) {
	s := NewStore(lease.Lasting, []lease.Line{github, api, npm})
	s.Put(leaseOf(github, 7, "Bearer a"))
	s.Take(github).Refused() // nobody hears it
	_, r, _, _ := broker(t, s)
	expect(t, r, &lease.Lines{Lines: []lease.Line{github, api, npm}})
	s.Put(leaseOf(api, 7, "Bearer a"))
	s.Put(leaseOf(npm, 2, "Bearer b"))
	s.Take(github).Refused()
	expect(t, r, &lease.Refused{Credential: "github", Generation: 7})
	s.Take(github).Refused()
	s.Take(api).Refused()
	s.Take(npm).Refused()
	expect(t, r, &lease.Refused{Credential: "npm", Generation: 2})
	s.mu.Lock()
	s.refused["github"] -= tellAgain
	s.mu.Unlock()
	old := s.Take(api)
	s.Take(github).Refused()
	expect(t, r, &lease.Refused{Credential: "github", Generation: 7})
	s.mu.Lock()
	s.refused["github"] -= tellAgain
	s.mu.Unlock()
	s.Revoke("github")
	old.Refused()
	s.SetLines([]lease.Line{npm})
	expect(t, r, &lease.Lines{Lines: []lease.Line{npm}})
}
