package proxy

import (
	"bufio"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// panicking is a reader that panics when its text is read.
type panicking struct{ io.Reader }

func (p panicking) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err == io.EOF {
		panic("a test's panic")
	}
	return n, err
}

// TestB60_PanicEndsTheConnection: whatever goroutine of a connection panics, both
// sides are reset, nothing of it goes on, and its buffers are never used again.
func TestB60_PanicEndsTheConnection(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: " + host + "\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name  string
		spoil func(*httpSession)
	}{
		{"reading a head", func(s *httpSession) {
			s.requests = &requestSide{cr: &clientReader{c: s.c}, br: bufio.NewReader(panicking{strings.NewReader("GET")})}
		}},
		{"sending a body", func(s *httpSession) {
			s.requests = &requestSide{cr: &clientReader{c: s.c}, br: bufio.NewReader(panicking{strings.NewReader(head + "1\r\nx\r\n")})}
		}},
		{"deciding", func(s *httpSession) {
			n, p := 0, s.room.Policy()
			s.room.Policy = func() *policy.Room {
				if n++; n > 1 { // not that of use
					panic("a test's panic")
				}
				return p
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, s := prepare(t)
			c.spoil(s)
			count, told := panics.Count(), false
			io.WriteString(x.client, head) // a write after the reset would have its error
			x.run(s, func() { told = true })
			x.ended(t)
			if !told || panics.Count() != count+1 {
				t.Errorf("told %v, %d panics, want 1", told, panics.Count()-count)
			}
			for _, side := range []io.Reader{x.client, x.upstream} {
				if _, err := io.Copy(io.Discard, side); !errors.Is(err, unix.ECONNRESET) {
					t.Errorf("a side ended with %v, want a reset", err)
				}
			}
			for range 100 {
				if br := readers.Get(); br == any(s.ubr) || s.requests != nil && br == any(s.requests.br) {
					t.Error("a buffer of it is used again")
				}
			}
		})
	}
}

// TestB60_PanicOfATunnel is the same where connections are joined bare.
func TestB60_PanicOfATunnel(t *testing.T) {
	for _, c := range []struct {
		name   string
		begin  func() error
		budget bool
	}{
		{"before it", func() error { panic("a test's panic") }, false},
		{"one direction", func() error { return nil }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, s := prepare(t)
			w := s.first
			if c.budget {
				w.budget = &budget{} // its window has no length: it panics
			}
			w.event.Kind = events.TCP
			w.to = netip.MustParseAddrPort("198.51.100.10:9000")
			io.WriteString(x.client, "x") // a write after the reset would have its error
			done := make(chan bool)
			go func() {
				done <- panics.Serve(func() { s.room.spliceAfter(s.c, w, c.begin) }, func() {})
			}()
			if <-done {
				t.Fatal("it didn't panic")
			}
			for _, side := range []io.Reader{x.client, x.upstream} {
				if _, err := io.Copy(io.Discard, side); !errors.Is(err, unix.ECONNRESET) {
					t.Errorf("a side ended with %v, want a reset", err)
				}
			}
		})
	}
}
