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
		return control.Denials{Denied: []events.Line{{
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
		for _, x := range l.refused(ctx, worker, began) {
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
	if got := none.refused(t.Context(), "w", began); got != nil {
		t.Errorf("no guard: %+v", got)
	}
}
