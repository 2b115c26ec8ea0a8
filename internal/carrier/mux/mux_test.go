package mux_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier/mux"
)

// pair returns the ends of a unix socket.
func pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "")
		conns[i], err = net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conns[i].Close() })
	}
	return conns[0], conns[1]
}

func anyHead([]byte) error { return nil }

// run runs a side until the test ends, and returns it with the error of its end.
func run(t testing.TB, conn io.ReadWriteCloser, c mux.Config) (*mux.Mux, <-chan error) {
	t.Helper()
	m, ended := mux.New(conn, c), make(chan error, 1)
	go func() { ended <- m.Run() }()
	t.Cleanup(func() { m.End(nil) })
	return m, ended
}

// echo answers with what it reads, and ends when the peer does.
func echo(s *mux.Stream) {
	_, err := io.Copy(s, s)
	if err == nil {
		s.CloseWrite()
	}
}

func within(t *testing.T, what string, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: not within 10 s", what)
		return nil
	}
}

func connected(t testing.TB, streams int, serve func(*mux.Stream)) (opener, server *mux.Mux) {
	a, b := pair(t)
	opener, _ = run(t, a, mux.Config{Odd: true, Streams: streams})
	server, _ = run(t, b, mux.Config{Streams: streams, Accept: anyHead, Serve: serve})
	return opener, server
}

func open(t testing.TB, m *mux.Mux, head string) *mux.Stream {
	t.Helper()
	s, err := m.Open([]byte(head))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBytesArrive(t *testing.T) {
	m, _ := connected(t, 64, echo)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			text := make([]byte, rand.IntN(1<<20))
			for j := range text {
				text[j] = byte(j * (i + 1))
			}
			s := open(t, m, "echo")
			go func() {
				s.Write(text)
				s.CloseWrite()
			}()
			if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, text) {
				t.Errorf("stream %d: %d bytes (%v), want %d", i, len(got), err, len(text))
			}
		})
	}
	all.Wait()
}

func TestHalfClose(t *testing.T) {
	m, _ := connected(t, 1, func(s *mux.Stream) {
		text, _ := io.ReadAll(s)
		s.Write(append([]byte("after the end: "), text...))
		s.CloseWrite()
	})
	s := open(t, m, "x")
	s.Write([]byte("hello"))
	s.CloseWrite()
	if got, err := io.ReadAll(s); err != nil || string(got) != "after the end: hello" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := s.Write([]byte("more")); err == nil {
		t.Error("it writes after its end")
	}
}

func TestReset(t *testing.T) {
	served := make(chan error, 1)
	m, server := connected(t, 1, func(s *mux.Stream) {
		_, err := io.Copy(io.Discard, s)
		served <- err
	})
	s := open(t, m, "x")
	s.Write([]byte("a"))
	s.Reset()
	if err := within(t, "the peer's read", served); !errors.Is(err, mux.ErrReset) {
		t.Errorf("the peer reads %v", err)
	}
	// By the peer: what it had sent is gone, too.
	a, _ := connected(t, 1, func(s *mux.Stream) {
		s.Write([]byte("lost"))
		s.Reset()
	})
	s = open(t, a, "x")
	<-s.Gone()
	if n, err := s.Read(make([]byte, 9)); !errors.Is(err, mux.ErrReset) {
		t.Errorf("read %d, %v", n, err)
	}
	if _, err := s.Write([]byte("b")); !errors.Is(err, mux.ErrReset) {
		t.Errorf("write: %v", err)
	}
	// With the connection.
	server.End(nil)
	<-server.Done()
	if _, err := m.Open([]byte("y")); err == nil {
		within(t, "the end", func() <-chan error { c := make(chan error, 1); go func() { <-m.Done(); c <- nil }(); return c }())
	}
}

// A stream that nobody reads takes its window and nothing else.
func TestStalledStreamStopsNoOther(t *testing.T) {
	m, _ := connected(t, 2, func(s *mux.Stream) {
		if string(s.Head()) == "stall" {
			<-s.Gone()
			return
		}
		echo(s)
	})
	stalled := open(t, m, "stall")
	sent := make(chan error, 1)
	go func() {
		n, err := stalled.Write(make([]byte, 2*mux.Window))
		if n != mux.Window {
			t.Errorf("%d bytes went without credit, want %d", n, mux.Window)
		}
		sent <- err
	}()
	s := open(t, m, "echo")
	go func() {
		s.Write(make([]byte, 1<<20))
		s.CloseWrite()
	}()
	if got, err := io.ReadAll(s); err != nil || len(got) != 1<<20 {
		t.Errorf("beside it: %d bytes, %v", len(got), err)
	}
	stalled.Reset()
	if err := within(t, "the stalled write", sent); !errors.Is(err, mux.ErrReset) {
		t.Errorf("the stalled write: %v", err)
	}
}

// Both sides count alike, however streams end: neither ends the connection for one too many.
func TestStreamsAreCountedAlike(t *testing.T) {
	const streams = 8
	m, _ := connected(t, streams, func(s *mux.Stream) {
		switch s.Head()[0] % 4 {
		case 0:
			echo(s)
		case 1: // at once
		case 2:
			s.CloseWrite()
			io.Copy(io.Discard, s)
		case 3:
			io.CopyN(io.Discard, s, 1)
			s.Write([]byte("x"))
			s.CloseWrite()
		}
	})
	var all sync.WaitGroup
	for i := range 2 * streams {
		all.Go(func() {
			for n := range 500 {
				s, err := m.Open([]byte{byte(i + n)})
				if errors.Is(err, mux.ErrStreams) {
					continue
				}
				if err != nil {
					t.Errorf("after %d: %v", n, err)
					return
				}
				s.Write([]byte("ab"))
				if n%3 == 0 {
					s.Reset()
					continue
				}
				s.CloseWrite()
				io.Copy(io.Discard, s)
				s.Close()
			}
		})
	}
	all.Wait()
	if s, err := m.Open([]byte("end")); err != nil {
		t.Errorf("afterwards: %v", err)
	} else {
		s.Close()
	}
}

func TestMessages(t *testing.T) {
	a, b := pair(t)
	got := make(chan error, 3)
	m, _ := run(t, a, mux.Config{Odd: true})
	_, ended := run(t, b, mux.Config{Message: func(text []byte) error {
		if string(text) == "bad" {
			return errors.New("a bad message")
		}
		got <- errors.New(string(text))
		return nil
	}})
	for _, text := range []string{"one", strings.Repeat("x", mux.MaxMessage)} {
		if err := m.Send([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := within(t, "a message", got); err.Error() != text {
			t.Errorf("got %d bytes, want %d", len(err.Error()), len(text))
		}
	}
	m.Send([]byte("bad"))
	if err := within(t, "the end", ended); err == nil || err.Error() != "a bad message" {
		t.Errorf("it ends with %v", err)
	}
}

func BenchmarkOpen(b *testing.B) {
	m, _ := connected(b, 64, echo)
	buf := make([]byte, 1)
	for b.Loop() {
		s := open(b, m, "x")
		s.Write(buf)
		s.CloseWrite()
		io.ReadFull(s, buf)
		io.Copy(io.Discard, s)
	}
}

func BenchmarkStream(b *testing.B) {
	m, _ := connected(b, 1, func(s *mux.Stream) { io.Copy(io.Discard, s) })
	s, buf := open(b, m, "x"), make([]byte, 64<<10)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		s.Write(buf)
	}
}
