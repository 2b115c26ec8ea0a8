package leases

import (
	"net"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/guard/lease"
)

var pushed = []lease.Pushed{{Ref: "refs/heads/agent/x", Old: zeroID, New: oneID}}

const (
	zeroID = "0000000000000000000000000000000000000000"
	oneID  = "1111111111111111111111111111111111111111"
)

// person is a broker of the test's own, at a store.
type person struct {
	*testing.T
	s *Store
	c net.Conn
	r *lease.Reader
}

func attachTo(t *testing.T, s *Store) *person {
	host, c := net.Pipe()
	served := make(chan struct{})
	go func() { s.Serve(c, func() {}); c.Close(); close(served) }()
	p := &person{t, s, host, lease.NewReader(host)}
	p.next()
	t.Cleanup(func() { host.Close(); <-served })
	return p
}

func (p *person) next() any {
	p.Helper()
	m, err := p.r.FromGuard()
	if err != nil {
		p.Fatal(err)
	}
	return m
}

// ask asks, and returns the question and where the answer will be.
func (p *person) ask(l lease.Line, alive func() bool) (*lease.Ask, chan error) {
	p.Helper()
	got := make(chan error, 1)
	go func() { got <- p.s.Ask(l, "acme/app", pushed, alive) }()
	m, ok := p.next().(*lease.Ask)
	if !ok || m.Line != l || m.Repository != "acme/app" || len(m.Refs) != 1 || m.Refs[0] != pushed[0] {
		p.Fatalf("the question is %+v", m)
	}
	return m, got
}

func (p *person) say(m any) {
	p.Helper()
	if err := lease.Write(p.c, m); err != nil {
		p.Fatal(err)
	}
}

func yes() bool { return true }

func is(t *testing.T, what string, got chan error, want error) {
	t.Helper()
	select {
	case err := <-got:
		if err != want {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	case <-time.After(5 * time.Second):
		t.Fatalf("%s: it waits", what)
	}
}

// Only a yes to the very question is one; all else ends it as a no.
func TestAsk(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*person, *lease.Ask)
		want error
	}{
		{"yes", func(p *person, m *lease.Ask) { p.say(&lease.Answer{ID: m.ID, Answer: lease.Yes}) }, nil},
		{"no", func(p *person, m *lease.Ask) { p.say(&lease.Answer{ID: m.ID, Answer: lease.No}) }, ErrNo},
		{"another question's yes", func(p *person, m *lease.Ask) {
			p.say(&lease.Answer{ID: m.ID + 1, Answer: lease.Yes})
			p.say(&lease.Answer{ID: m.ID, Answer: lease.No})
		}, ErrNo},
		{"a yes after the no", func(p *person, m *lease.Ask) {
			p.say(&lease.Answer{ID: m.ID, Answer: lease.No})
			p.say(&lease.Answer{ID: m.ID, Answer: lease.Yes})
		}, ErrNo},
		{"nobody", func(p *person, m *lease.Ask) { p.say(&lease.Answer{ID: m.ID, Answer: lease.Nobody}) }, ErrNobody},
		{"not answered", func(p *person, m *lease.Ask) { p.say(&lease.Answer{ID: m.ID, Answer: lease.Unanswered}) }, ErrUnanswered},
		{"the broker is gone", func(p *person, _ *lease.Ask) { p.c.Close() }, ErrNoLease},
		{"revoked", func(p *person, _ *lease.Ask) { p.say(&lease.Revoke{Credential: "github"}) }, ErrNoLease},
		{"another credential is revoked", func(p *person, m *lease.Ask) {
			p.say(&lease.Revoke{Credential: "npm"})
			p.say(&lease.Answer{ID: m.ID, Answer: lease.Yes})
		}, nil},
		{"the line is gone", func(p *person, _ *lease.Ask) { p.s.SetLines([]lease.Line{api, other}) }, ErrNoLease},
		{"the lease is over", func(p *person, _ *lease.Ask) {
			p.s.mu.Lock()
			h := p.s.held[github]
			h.until = 0
			p.s.mu.Unlock()
			p.s.expire(h)
		}, ErrNoLease},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewStore(time.Minute, []lease.Line{github, api, other})
			p := attachTo(t, s)
			s.Put(leaseOf(github, 1, canary))
			m, got := p.ask(github, yes)
			c.do(p, m)
			is(t, c.name, got, c.want)
		})
	}
	s := NewStore(time.Minute, []lease.Line{github})
	if err := s.Ask(github, "acme/app", pushed, yes); err != ErrNoLease {
		t.Errorf("without a broker: %v", err)
	}
	attachTo(t, s)
	if err := s.Ask(api, "acme/app", pushed, yes); err != ErrNoLease {
		t.Errorf("for no line: %v", err)
	}
	if err := s.Ask(github, "acme/app", nil, yes); err != ErrUnaskable {
		t.Errorf("without refs: %v", err)
	}
}

// B60: a room has one question at a time, and after one without a yes none for a while; the
// broker hears that nobody waits any more.
func TestB60_AsksAreFew(t *testing.T) {
	s := NewStore(500*time.Millisecond, []lease.Line{github, api, other})
	p := attachTo(t, s)
	first, got := p.ask(github, yes)
	if err := s.Ask(api, "acme/app", pushed, yes); err != ErrAsking {
		t.Errorf("a second one of the room: %v", err)
	}
	second, gone := p.ask(other, func() bool { return false })
	is(t, "who asked has gone", gone, ErrUnanswered)
	if m, ok := p.next().(*lease.AskEnded); !ok || m.ID != second.ID {
		t.Errorf("the broker hears %+v", m)
	}
	if err := s.Ask(other, "acme/app", pushed, yes); err != ErrAsking {
		t.Errorf("again at once: %v", err)
	}
	p.say(&lease.Answer{ID: first.ID, Answer: lease.Yes})
	is(t, "the first", got, nil)
	m, got := p.ask(api, yes)
	p.say(&lease.Answer{ID: m.ID, Answer: lease.No})
	is(t, "after a yes", got, ErrNo)
	if err := s.Ask(github, "acme/app", pushed, yes); err != ErrAsking {
		t.Errorf("at once after a no: %v", err)
	}
	time.Sleep(quietLeases*500*time.Millisecond + 50*time.Millisecond)
	m, got = p.ask(github, yes)
	p.say(&lease.Answer{ID: m.ID, Answer: lease.Yes})
	is(t, "later", got, nil)
}
