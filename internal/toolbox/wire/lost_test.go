package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestVanish: a client that is gone after any number of bytes ends the server,
// with its handlers.
func TestVanish(t *testing.T) {
	all := append(request(1, "yes", "{}"), request(2, "cat", "{}")...)
	all = append(all, data(2, Stdin, "abc")...)
	all = append(all, msg(`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}`)...)
	all = append(all, request(3, "hang", "{}")...)
	for n := range len(all) + 1 {
		p, served := rawClient(t, methods)
		p.send(all[:n])
		_ = p.Close()
		err := wait(t, served)
		if err != nil && !strings.Contains(err.Error(), "inside a frame") && !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// TestHalfClosed: a client that only stops to send has ended the connection as
// well, even where it doesn't read what a handler writes.
func TestHalfClosed(t *testing.T) {
	p, served := rawClient(t, methods)
	p.send(request(1, "yes", "{}"))
	time.Sleep(10 * time.Millisecond)
	if err := p.Conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, served); err != nil {
		t.Errorf("Serve: %v", err)
	}
	// The other half: nobody will ever read.
	p, served = rawClient(t, methods)
	if err := p.Conn.(*net.UnixConn).CloseRead(); err != nil {
		t.Fatal(err)
	}
	p.send(request(1, "yes", "{}"))
	if err := wait(t, served); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("Serve: %v", err)
	}
}

// TestServeContext: the end of its context ends Serve.
func TestServeContext(t *testing.T) {
	a, b := socketpair(t)
	ctx, cancel := context.WithCancelCause(background)
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, b, methods) }()
	c := NewClient(a)
	lost := make(chan error, 1)
	go func() { lost <- c.Call(background, "hang", nil, nil) }()
	time.Sleep(10 * time.Millisecond)
	mine := errors.New("enough")
	cancel(mine)
	if err := wait(t, served); err != mine {
		t.Errorf("Serve: %v", err)
	}
	var l *LostError
	if err := wait(t, lost); !errors.As(err, &l) || !l.Sent {
		t.Errorf("Call: %v", err)
	}
	_ = c.Close()
}

// TestStuckServer: a server that reads nothing holds up nobody for longer than
// he wants, and a call that certainly wasn't sent says so.
func TestStuckServer(t *testing.T) {
	c, _ := rawServer(t)
	large := text{strings.Repeat("x", 4<<20)}
	first := make(chan error, 1)
	go func() { first <- c.Call(background, "first", large, nil) }()
	for { // until it is being written
		c.out.mu.Lock()
		busy := c.out.busy
		c.out.mu.Unlock()
		if busy {
			break
		}
		time.Sleep(time.Millisecond)
	}
	// More than there are slots: all return at the end of their context.
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	var ended []chan error
	for range 2 * messageSlots {
		ch := make(chan error, 1)
		ended = append(ended, ch)
		go func() { ch <- c.Call(ctx, "next", text{"x"}, nil) }()
	}
	for _, ch := range ended {
		if err := wait(t, ch); err != context.DeadlineExceeded {
			t.Errorf("a call whose context has ended: %v", err)
		}
	}
	// A stream's data waits as well, and ends with its call.
	ctx, cancel = context.WithCancel(background)
	o, err := c.Start(ctx, "stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := o.Stream(Stdin).Write(make([]byte, 4*Window))
		wrote <- err
	}()
	time.Sleep(10 * time.Millisecond)
	cancel()
	if err := wait(t, wrote); err != context.Canceled {
		t.Errorf("a write whose call is cancelled: %v", err)
	}
	queued := make(chan error, 1)
	go func() { queued <- c.Call(background, "queued", text{"x"}, nil) }()
	for {
		c.out.mu.Lock()
		n := len(c.out.high.f) - c.out.high.head
		c.out.mu.Unlock()
		if n > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	within(t, "Close", func() { c.Close() })
	for ch, what := range map[chan error]string{first: "first", queued: "queued"} {
		var l *LostError
		if err := wait(t, ch); !errors.As(err, &l) || !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", what, err)
		} else if what == "queued" && l.Sent {
			t.Errorf("a call that was never sent: %v", err)
		}
	}
}

// stone is a connection beneath that nothing ends.
type stone struct{ c chan struct{} }

func (s stone) Read([]byte) (int, error)  { <-s.c; return 0, io.EOF }
func (s stone) Write([]byte) (int, error) { <-s.c; return 0, io.ErrClosedPipe }
func (s stone) Close() error              { <-s.c; return nil }

// TestStone: even that doesn't make Close hang, nor a call, nor Serve.
func TestStone(t *testing.T) {
	s := stone{make(chan struct{})}
	defer close(s.c)
	c := NewClient(s)
	call := make(chan error, 1)
	go func() { call <- c.Call(background, "x", nil, nil) }()
	within(t, "Close", func() { c.Close() })
	var l *LostError
	if err := wait(t, call); !errors.As(err, &l) {
		t.Errorf("Call: %v", err)
	}
	ctx, cancel := context.WithCancel(background)
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, s, methods) }()
	cancel()
	if err := wait(t, served); err != context.Canceled {
		t.Errorf("Serve: %v", err)
	}
}

// TestLostStreams: what came before the end can still be read, then it is an
// error, no end of the stream.
func TestLostStreams(t *testing.T) {
	c, p := rawServer(t)
	o, err := c.Start(background, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, _ = p.frame()
	p.send(data(1, Stdout, "abc"))
	_ = p.Close()
	within(t, "Done", func() { <-c.Done() })
	b, err := io.ReadAll(o.Stream(Stdout))
	var l *LostError
	if string(b) != "abc" || !errors.As(err, &l) || !errors.Is(err, ErrPeerClosed) {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := o.Stream(Stdin).Write([]byte("x")); !errors.As(err, &l) {
		t.Errorf("write: %v", err)
	}
}
