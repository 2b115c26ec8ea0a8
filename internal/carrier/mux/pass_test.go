package mux_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/carrier/mux"
)

// passed returns a side whose streams are passed on to another connection, where serve
// serves them, and both sides between. before, which may be nil, is called before each.
func passed(t testing.TB, streams int, before func(), serve func(*mux.Stream)) (opener, in, out *mux.Mux) {
	out, _ = connected(t, streams, serve)
	opener, in = connected(t, streams, func(s *mux.Stream) {
		if before != nil {
			before()
		}
		if next, err := out.Open(s.Head()); err == nil {
			mux.Pass(s, next)
		}
	})
	return opener, in, out
}

// What is passed on arrives, also what came before and by many streams.
func TestPass(t *testing.T) {
	for name, before := range map[string]func(){"at once": nil, "late": func() { time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) }} {
		t.Run(name, func(t *testing.T) {
			m, _, _ := passed(t, 32, before, echo)
			var all sync.WaitGroup
			for i := range 32 {
				all.Go(func() {
					for range 5 {
						text := bytes.Repeat([]byte{byte(i), byte(i + 1), byte(i + 2)}, rand.IntN(200_000))
						s := open(t, m, "echo")
						go func() {
							s.Write(text)
							s.CloseWrite()
						}()
						if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, text) {
							t.Errorf("stream %d: %d bytes (%v), want %d", i, len(got), err, len(text))
						}
						s.Close()
					}
				})
			}
			all.Wait()
		})
	}
}

// An end of data, a reset and the end of a connection are passed on as what they are.
func TestPassEnds(t *testing.T) {
	served := make(chan *mux.Stream, 1)
	m, _, out := passed(t, 8, nil, func(s *mux.Stream) {
		served <- s
		<-s.Gone()
	})
	s := open(t, m, "ended")
	other := <-served
	s.Write([]byte("hello"))
	s.CloseWrite()
	if got, err := io.ReadAll(other); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
	other.Write([]byte("answer"))
	other.CloseWrite()
	if got, err := io.ReadAll(s); err != nil || string(got) != "answer" {
		t.Errorf("got %q, %v", got, err)
	}
	other.Close()

	s = open(t, m, "reset here")
	other = <-served
	s.Reset()
	if _, err := other.Read(make([]byte, 1)); !errors.Is(err, mux.ErrReset) {
		t.Errorf("got %v", err)
	}
	s = open(t, m, "reset there")
	other = <-served
	other.Reset()
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, mux.ErrReset) {
		t.Errorf("got %v", err)
	}
	s = open(t, m, "connection")
	<-served
	out.End(nil)
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, mux.ErrReset) {
		t.Errorf("got %v", err)
	}
}

// Who passes on gives no more credit than it got: what a peer sends that isn't read stays
// within one window, wherever it is.
func TestPassKeepsNothing(t *testing.T) {
	served := make(chan *mux.Stream, 1)
	m, _, _ := passed(t, 1, nil, func(s *mux.Stream) {
		served <- s
		<-s.Gone()
	})
	s := open(t, m, "x")
	s.Write([]byte("x"))
	other := <-served
	if n, err := other.Read(make([]byte, 9)); n != 1 || err != nil { // it is passed on
		t.Fatal(n, err)
	}
	sent := make(chan int)
	go func() {
		n, _ := s.Write(make([]byte, 10*mux.Window))
		sent <- n
	}()
	select {
	case n := <-sent:
		t.Fatalf("%d bytes are sent", n)
	case <-time.After(200 * time.Millisecond):
	}
	s.Reset()
	if n := <-sent; n != mux.Window-1 {
		t.Errorf("%d bytes are sent that nobody reads, want %d", n, mux.Window-1)
	}
	other.Close()
}
