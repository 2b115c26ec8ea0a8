package app

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/events"
)

// Questions go over one connection until it ends, and then over another; a guard
// that hangs, or isn't there, holds nobody longer than asked for.
func TestGuardLine(t *testing.T) {
	began := time.Now()
	var connects atomic.Int32
	hang := make(chan struct{})
	server := control.NewServer(func(_ context.Context, r control.Request) (any, error) {
		if r.Worker == "hangs" {
			<-hang
		}
		room := "room-w"
		if r.Worker == "shares" {
			room = "room" // the only one
		}
		return control.Failures{Room: room, Workers: []string{"w", "shares"}, Events: []events.Line{{
			Time: r.Since, Verdict: events.Deny, Name: "a.example.org", Port: 443, Protocol: "tcp", Reason: firewall.ReasonName, Suggest: "a.example.org",
		}}}, nil
	})
	var guardEnd atomic.Pointer[net.Conn]
	l := &guardLine{connect: func() (io.ReadWriteCloser, error) {
		host, guard := net.Pipe()
		connects.Add(1)
		guardEnd.Store(&guard)
		go server.Serve(t.Context(), guard)
		return host, nil
	}}
	ask := func(worker string, patience time.Duration) (targets []string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for _, x := range l.failures(ctx, worker, began).refused {
			targets = append(targets, x.Target+" "+x.Command)
		}
		return targets
	}
	want := []string{"a.example.org:443 workshop firewall allow a.example.org --worker w"}
	for range 3 {
		if got := ask("w", 10*time.Second); !slices.Equal(got, want) {
			t.Fatalf("refused %q, want %q", got, want)
		}
	}
	if n := connects.Load(); n != 1 {
		t.Errorf("%d connections for three questions", n)
	}
	if got, want := ask("shares", 10*time.Second), "a.example.org:443 workshop firewall allow a.example.org"; len(got) != 1 || got[0] != want {
		t.Errorf("where all share a room: %q, want %q", got, want)
	}
	(*guardEnd.Load()).Close() // another guard takes its place
	if got := ask("w", 10*time.Second); !slices.Equal(got, want) || connects.Load() != 2 {
		t.Errorf("refused %q, want %q; %d connections", got, want, connects.Load())
	}
	start := time.Now()
	if got := ask("hangs", 50*time.Millisecond); got != nil || time.Since(start) > 5*time.Second {
		t.Errorf("a guard that hangs: %q after %v", got, time.Since(start))
	}
	close(hang)
	if got := ask("w", 10*time.Second); !slices.Equal(got, want) {
		t.Errorf("after that: %q, want %q", got, want)
	}
	l.close()
	none := &guardLine{connect: func() (io.ReadWriteCloser, error) { return nil, errors.New("no guard") }}
	if got := none.failures(t.Context(), "w", began); got.refused != nil {
		t.Errorf("no guard: %+v", got)
	}
}

// A person is told of an allowed host why it can't be reached.
func TestHintUnreachable(t *testing.T) {
	note := func(reason, name string, port uint16, protocol string) events.Line {
		return events.Line{Verdict: events.Note, Reason: reason, Name: name, Port: port, Protocol: protocol}
	}
	for _, c := range []struct {
		name  string
		lines []events.Line
		want  string
	}{
		{"none", nil, ""},
		{"look-up", []events.Line{note(events.ReasonUnresolved, "a.example.org", 0, "dns")},
			"a.example.org is allowed, but no resolver of this machine has an address for it; to try it: `workshop firewall explain a.example.org`"},
		{"connection", []events.Line{note(events.ReasonUnresolved, "a.example.org", 0, "dns"), note(events.ReasonUnreachable, "b.example.org", 8080, "tcp")},
			"b.example.org:8080 is allowed, but it can't be connected to; to try it: `workshop firewall explain b.example.org:8080`"},
		{"upstream proxy", []events.Line{{Verdict: events.Note, Reason: events.ReasonProxy, Name: "a.example.org", Port: 443, Protocol: "tcp", Why: "allowed, but the upstream proxy proxy.example.net:3128 can't be resolved"}},
			"a.example.org:443 is allowed, but the upstream proxy proxy.example.net:3128 can't be resolved; to try it: `workshop firewall explain a.example.org:443`"},
		{"upstream proxy, of a name that a worker may have made up", []events.Line{{Verdict: events.Note, Reason: events.ReasonProxy, Protocol: "tcp", Why: "allowed, but the upstream proxy 198.51.100.80:3128 refuses CONNECT with 403"}},
			"a connection is allowed, but the upstream proxy 198.51.100.80:3128 refuses CONNECT with 403; to try it: `workshop firewall explain HOST`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (failures{unreachable: c.lines}).hintUnreachable(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
