//go:build linux

package carrier_test

import (
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// B60: with all streams in their worst state, an outlet uses less than 80 % of its memory
// limit, including the kernel's buffers, and carries on afterwards.
func TestOutletMemory(t *testing.T) {
	if testutil.Race {
		t.Skip("measures memory")
	}
	const inboundPort = "18080"
	w := &hostileWorld{world: newNamespaces(t, inboundPort)}
	g, err := testutil.NewMemoryGroup(firewall.OutletMemory)
	testutil.Require(t, err == nil, "memory groups need root")
	t.Cleanup(func() {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	})
	w.memory = g
	w.startOutlet()
	nobodyReads := func(c *net.TCPConn) { // and it sends what it can
		nothing := make([]byte, 32<<10)
		for {
			c.SetWriteDeadline(time.Now().Add(time.Minute))
			if _, err := c.Write(nothing); err != nil {
				return
			}
		}
	}
	w.serve(443, nobodyReads)
	w.serve(80, whereTo)
	say := func(what string) {
		all, tcp, err := g.Now()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d MiB, %d MiB of it buffers of TCP", what, all>>20, tcp>>20)
	}
	say("idle")
	var sent atomic.Int64
	flood := func(s *mux.Stream) {
		nothing := make([]byte, mux.MaxData)
		for {
			n, err := s.Write(nothing)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	settle := func(moved func() int64) {
		for last, quiet := int64(-1), 0; quiet < 8; quiet++ {
			time.Sleep(100 * time.Millisecond)
			if now := moved(); now != last {
				last, quiet = now, 0
			}
		}
	}

	m := w.relay(flood)
	var all sync.WaitGroup
	var conns []net.Conn
	for i := range carrier.MaxStreams {
		s, err := m.Open(head("198.51.100." + strconv.Itoa(1+i%250) + ":443"))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { flood(s) })
		c, err := w.dial(w.outside, "tcp4", "127.0.0.1:"+inboundPort)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		go nobodyReads(c.(*net.TCPConn))
	}
	settle(func() int64 {
		now, _, _ := g.Now()
		return sent.Load() + now>>20
	})
	say("nobody reads")
	m.End(nil)
	for _, c := range conns {
		c.Close()
	}
	all.Wait()

	peak, err := g.Peak()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak: %d MiB", peak>>20)
	if killed, err := g.Killed(); err != nil || killed != 0 || peak > firewall.OutletMemory*8/10 {
		t.Errorf("%d MiB of %d, %d processes were OOM-killed, %v", peak>>20, firewall.OutletMemory>>20, killed, err)
	}
	testutil.Eventually(t, "another relay is served afterwards", func() bool {
		m := w.relay(nil)
		defer m.End(nil)
		s, err := m.Open(head("198.51.100.7:80"))
		if err != nil {
			return false
		}
		b, err := io.ReadAll(s)
		return err == nil && string(b) == "198.51.100.7:80 from 127.0.0.1"
	})
}
