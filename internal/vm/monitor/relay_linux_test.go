package monitor

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// B60: however many connections there are to published ports, sessions get through.
func TestInboundLeavesSessions(t *testing.T) {
	var decided atomic.Int64
	anyHead := func([]byte) error { return nil }
	run := func(conn io.ReadWriteCloser, c mux.Config) *mux.Mux {
		m := mux.New(conn, c)
		go func() { _ = m.Run() }()
		t.Cleanup(func() { m.End(nil) })
		return m
	}
	toOutlet, atOutlet := net.Pipe()
	toGuest, atGuest := net.Pipe()
	o := newOnward(func(context.Context) (io.ReadWriteCloser, error) { return toOutlet, nil })
	run(atGuest, mux.Config{Odd: true, Streams: carrier.MaxStreams, Accept: anyHead, Serve: func(s *mux.Stream) { decided.Add(1); <-s.Gone() }})
	host := run(toGuest, mux.Config{Streams: carrier.MaxStreams, Accept: o.accept, Serve: o.serve})
	go o.run(host)
	outlet := run(atOutlet, mux.Config{Streams: carrier.MaxStreams})
	for range carrier.MaxStreams {
		s, err := outlet.Open(carrier.Head{Kind: carrier.Inbound, Port: 8080}.Encode())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if _, err := s.Read(make([]byte, 1)); err != nil && t.Context().Err() == nil {
				decided.Add(1) // refused
			}
		}()
	}
	testutil.Eventually(t, "each connection is held or refused", func() bool { return decided.Load() == carrier.MaxStreams })
	for i := range dialin.MaxSessions {
		if _, err := host.Open(carrier.Head{Kind: carrier.Session}.Encode()); err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
	}
}
