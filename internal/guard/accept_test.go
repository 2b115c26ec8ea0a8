package guard

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/guard/share"
)

// TestB60_TooManyPanics: a guard that recovers again and again ends, for its engine
// to start a new one.
func TestB60_TooManyPanics(t *testing.T) {
	w := buildWorld(t, restricted(t, "allowed.example.org"))
	w.role = "panicking guard"
	w.startRooms()
	w.launchGuard()
	select {
	case <-w.guard.done:
	case <-time.After(5 * time.Second):
		t.Fatal("it goes on")
	}
	if code := w.guard.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

// TestB60_AcceptRecovers: a connection whose handler panics is reset, reported and
// gives its place back; the next one is served.
func TestB60_AcceptRecovers(t *testing.T) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, told := make(chan struct{}), make(chan struct{}, 10)
	places := share.NewPool(1, 1).Room()
	go func() {
		defer close(ended)
		accept(ctx, l, places, func(_ context.Context, c *net.TCPConn) {
			b := make([]byte, 1)
			if _, err := c.Read(b); err != nil || b[0] == 'p' {
				panic("a test's panic")
			}
			c.Write(b)
		}, func() { told <- struct{}{} })
	}()
	count := panics.Count()
	for _, x := range []struct {
		send string
		want error
	}{{"p", unix.ECONNRESET}, {"x", nil}, {"p", unix.ECONNRESET}, {"x", nil}} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(5 * time.Second))
		io.WriteString(c, x.send)
		if _, err := io.ReadAll(c); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.send, err, x.want)
		}
		c.Close()
	}
	<-told
	<-told
	if n := panics.Count() - count; n != 2 {
		t.Errorf("%d panics, want 2", n)
	}
	cancel()
	l.Close()
	<-ended
}
