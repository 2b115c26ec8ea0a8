package broker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/leases"
)

var refs = []lease.Pushed{{Ref: "refs/heads/agent/x", Old: strings.Repeat("0", 40), New: strings.Repeat("1", 40)}}

func ask(store *leases.Store, l lease.Line) chan error {
	got := make(chan error, 1)
	go func() { got <- store.Ask(l, "acme/app", refs, func() bool { return true }) }()
	return got
}

// next is the next of a channel, soon.
func next[T any](t *testing.T, c chan T) (x T) {
	t.Helper()
	select {
	case x = <-c:
	case <-time.After(5 * time.Second):
		t.Fatal("it waits")
	}
	return x
}

// With a credential whose pushes are asked about, the lease says so, and only the user's yes is
// one: for a line that their file has, in time, and without an error.
func TestAskPush(t *testing.T) {
	forge := of("forge", 0, "git.example", "api.git.example")
	forge.AskPush = true
	rooms, allowed := []lease.Line{git}, Allowed{git: forge}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		l := git
		l.Room = name
		rooms, allowed[l] = append(rooms, l), forge
	}
	type reply struct {
		answer lease.Decided
		err    error
	}
	var asks atomic.Int32
	begun, answer := make(chan *lease.Ask, 10), make(chan reply)
	ended := make(chan error, 10)
	s := &Server{
		Use:     func(Use) error { return nil },
		Allowed: func() (Allowed, error) { return allowed, nil },
		Read: func(context.Context, credential.Credential) (Value, error) {
			return Value{Secret: []byte("canary")}, nil
		},
		Ask: func(ctx context.Context, m *lease.Ask) (lease.Decided, error) {
			if asks.Add(1) != 1 {
				t.Error("two questions at a time")
			}
			defer asks.Add(-1)
			begun <- m
			select {
			case r := <-answer:
				return r.answer, r.err
			case <-ctx.Done():
				ended <- context.Cause(ctx)
				return lease.Yes, nil
			}
		},
	}
	_, guard, cut, _ := serve(t, s, rooms[1:]...)
	waitFor(t, "leased", func() bool { h := guard.Load().Take(git); return h != nil && h.AskPush })
	store := guard.Load()
	for i, x := range []struct {
		reply reply
		want  error
	}{
		{reply{lease.Yes, nil}, nil}, {reply{lease.No, nil}, leases.ErrNo}, {reply{lease.Unanswered, errors.New("it fails")}, leases.ErrUnanswered},
		{reply{lease.Yes, errors.New("it fails")}, leases.ErrUnanswered}, {reply{lease.Nobody, nil}, leases.ErrNobody},
	} {
		got := ask(store, rooms[i])
		if m := next(t, begun); m.Line != rooms[i] || m.Repository != "acme/app" || m.Refs[0] != refs[0] {
			t.Errorf("asked %+v", m)
		}
		select {
		case answer <- x.reply:
		case <-time.After(5 * time.Second):
			t.Fatal("nobody is asked")
		}
		if err := next(t, got); err != x.want {
			t.Errorf("%+v: %v, want %v", x.reply, err, x.want)
		}
	}
	if err := next(t, ask(store, api)); err != leases.ErrUnanswered {
		t.Errorf("a line that may not have the credential: %v", err)
	}

	// One at a time. The end of the connection ends both, and what answers then answers nobody.
	one, two := ask(store, rooms[4]), ask(store, rooms[5])
	next(t, begun)
	cut()
	for _, got := range []chan error{one, two} {
		if err := next(t, got); err != leases.ErrNoLease {
			t.Errorf("the connection has ended: %v", err)
		}
	}
	next(t, ended)
}

// Where no setting says whom to ask, the answer is at once that nobody can be asked; a guard
// that asks without end is refused.
func TestB60_AskedWithoutEnd(t *testing.T) {
	forge := of("forge", 0, "git.example")
	forge.AskPush = true
	conn := &written{}
	r := &loop{Server: &Server{}, core: NewCore(), ctx: t.Context(), asked: map[uint64]*asking{}, turn: make(chan struct{}, 1), events: make(chan func()), conn: conn}
	r.Log = discard
	r.core.Allow(Allowed{git: forge})
	r.core.Lines([]lease.Line{git})
	r.ask(&lease.Ask{Line: git, ID: 1, Repository: "acme/app", Refs: refs})
	if got := conn.String(); got != `{"type":"answer","id":1,"answer":"nobody"}`+"\n" {
		t.Errorf("without a setting: %s", got)
	}
	r.Ask = func(ctx context.Context, _ *lease.Ask) (lease.Decided, error) { <-ctx.Done(); return lease.No, nil }
	for id := range uint64(maxAsked) {
		r.ask(&lease.Ask{Line: git, ID: id + 2, Repository: "acme/app", Refs: refs})
	}
	conn.Reset()
	r.ask(&lease.Ask{Line: git, ID: 100, Repository: "acme/app", Refs: refs})
	if got := conn.String(); got != `{"type":"answer","id":100,"answer":"unanswered"}`+"\n" || len(r.asked) != maxAsked {
		t.Errorf("one more: %s, of %d", got, len(r.asked))
	}
	r.endAsks()
	if len(r.asked) != 0 {
		t.Errorf("%d wait", len(r.asked))
	}
}

// written is a connection that keeps what is written.
type written struct{ bytes.Buffer }

func (*written) Close() error { return nil }

var discard = log.New(io.Discard, "", 0)
