//go:build linux && amd64

package vm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/vm/guest"
	"github.com/llmdo/workshop/internal/vm/monitor"
)

// frame is one of package mux, as its bytes.
func frame(kind byte, stream uint32, payload ...byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, stream)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(payload))), payload...)
}

// Kinds of frames.
const (
	frameOpen byte = 1 + iota
	frameData
	frameFin
	frameReset
	frameCredit
	frameMessage
)

func encoded(h carrier.Head) []byte { return h.Encode() }

// opened begins a stream that goes to the server which never reads.
func opened(stream uint32) []byte {
	return frame(frameOpen, stream, encoded(carrier.Head{Kind: carrier.TCP, Address: netip.MustParseAddrPort("198.51.100.7:443")})...)
}

// worst fills the windows of as many streams as there may be.
const worst = "worst"

// breaches are what hostile guests send after they are ready, and how their machines end;
// the bytes are made inside.
var breaches = map[string]struct {
	sent func(w io.Writer)
	want string
}{
	"inbound": {func(w io.Writer) {
		w.Write(frame(frameOpen, 1, encoded(carrier.Head{Kind: carrier.Inbound, Port: 80})...))
	}, carrier.ErrWay.Error()},
	"ports": {func(w io.Writer) {
		w.Write(frame(frameMessage, 0, encoded(carrier.Head{Kind: carrier.Ports, Ports: []uint16{80}})...))
	}, carrier.ErrWay.Error()},
	"credit": {func(w io.Writer) {
		w.Write(append(opened(1), frame(frameCredit, 1, 0xff, 0xff, 0xff, 0xff)...))
	}, "the peer broke the protocol"},
	worst: {func(w io.Writer) {
		for i := range uint32(carrier.MaxStreams) {
			w.Write(opened(2*i + 1))
		}
		for range mux.Window / mux.MaxData {
			for i := range uint32(carrier.MaxStreams) {
				w.Write(frame(frameData, 2*i+1, make([]byte, mux.MaxData)...))
			}
		}
		time.Sleep(10 * time.Second) // what the server sends arrives at the host
		w.Write(opened(2*carrier.MaxStreams + 1))
	}, "the peer broke the protocol: it opened more than 1024 streams"},
	"resets": {func(w io.Writer) {
		for i := range uint32(20_000) {
			w.Write(append(opened(2*i+1), frame(frameReset, 2*i+1)...))
		}
		w.Write(frame(7, 0)) // the end of the test
	}, "the peer broke the protocol: a frame of kind 7"},
}

func init() {
	if b, ok := breaches[kindOf()]; ok && os.Getpid() == 1 {
		port, err := guest.Prepare(os.Stderr)
		if err != nil {
			fmt.Println(err)
		}
		port.Write(frame(frameMessage, 0, encoded(carrier.Head{Kind: carrier.Ready})...))
		b.sent(port)
		time.Sleep(time.Hour)
	}
}

// maxCarried bounds what a guest's streams cost the process that started the machine, in
// bytes, besides what the outlet uses. Who passes on keeps nothing of them: 16 MiB of stacks.
const maxCarried = 32 << 20

// anonymous is a process's own memory, in bytes.
func anonymous(t *testing.T, pid int) (n int64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "RssAnon:")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// B60: a guest that breaks the carrier's rules, in a machine with a relay, ends it; what it
// may have, with all that its streams keep, is bounded.
func TestHostileStreams(t *testing.T) {
	for kind, c := range breaches {
		t.Run(kind, func(t *testing.T) {
			r := newRoom(t)
			var taken atomic.Int64
			r.serve("198.51.100.7:443", func(c net.Conn) { // it never reads, and sends what it can
				taken.Add(1)
				for {
					if _, err := c.Write(large); err != nil {
						return
					}
				}
			})
			s := spec(t, mark(t, kind), nil)
			r.startOutlet()
			s.Relay = monitor.Outlet(r.socket())
			debug.FreeOSMemory() // of making the kit
			before := anonymous(t, os.Getpid())
			m, err := r.boot(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Stop()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := m.Ready(ctx); err != nil && !errors.Is(err, mux.ErrProtocol) {
				t.Fatal(err)
			}
			most := int64(0)
			end := time.After(2 * time.Minute)
			for over := false; !over; {
				select {
				case <-m.Done():
					over = true
				case <-end:
					t.Fatal("it goes on")
				case <-time.After(20 * time.Millisecond):
					most = max(most, anonymous(t, os.Getpid())-before)
				}
			}
			if got := fmt.Sprint(m.Err()); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %q", got, c.want)
			}
			t.Logf("%d MiB more, %d connections", most>>20, taken.Load())
			if kind == worst && taken.Load() != carrier.MaxStreams {
				t.Errorf("%d connections, want %d", taken.Load(), carrier.MaxStreams)
			}
			if !testutil.Race && most > maxCarried {
				t.Errorf("%d MiB, want %d at most", most>>20, maxCarried>>20)
			}
		})
	}
}
