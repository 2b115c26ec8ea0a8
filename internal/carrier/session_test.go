//go:build linux

package carrier_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/carrier/relay"
	"github.com/llmdo/workshop/internal/guard/buffers"
)

// relayed is a relay, and its other side.
func relayed(t *testing.T, session func(*mux.Stream), message func([]byte) error) (*relay.Relay, *mux.Mux) {
	t.Helper()
	ours, theirs := net.Pipe()
	m := mux.New(ours, mux.Config{Streams: carrier.MaxStreams, Message: message})
	go m.Run()
	dialled := false
	r, err := relay.New(relay.Options{Session: session, Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
		if dialled {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		dialled = true
		return theirs, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.End(nil)
		r.Close()
	})
	return r, m
}

// A session of a machine's worker is carried both ways to its end, and the lines of its
// PID 1 come out.
func TestSession(t *testing.T) {
	inside := make(chan error, 2)
	pair := func() (ends [2]*net.UnixConn) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		for i := 0; i < 2 && err == nil; i++ {
			f := os.NewFile(uintptr(fds[i]), "pair")
			var c net.Conn
			if c, err = net.FileConn(f); err == nil {
				ends[i] = c.(*net.UnixConn)
				t.Cleanup(func() { c.Close() })
			}
			f.Close()
		}
		if err != nil {
			panic(err)
		}
		return ends
	}
	lines := make(chan carrier.Head, 2)
	r, m := relayed(t, func(s *mux.Stream) {
		ends := pair()
		worker, session := ends[0], ends[1]
		go func() {
			text, err := io.ReadAll(session)
			if err == nil {
				_, err = session.Write(append([]byte("after the end "), text...))
			}
			session.Close()
			inside <- err
		}()
		carrier.JoinUnix(worker, s, buffers.Small)
	}, func(text []byte) error {
		h, err := carrier.DecodeOf(text, carrier.Output)
		lines <- h
		return err
	})
	s, err := m.Open(carrier.Head{Kind: carrier.Session}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	ends := pair()
	client := ends[0]
	go carrier.JoinUnix(ends[1], s, buffers.Small)
	text := strings.Repeat("0123456789", 100_000)
	go func() {
		io.WriteString(client, text)
		client.CloseWrite()
	}()
	if got, err := io.ReadAll(client); err != nil || string(got) != "after the end "+text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := <-inside; err != nil {
		t.Error(err)
	}
	want := carrier.Head{Kind: carrier.Output, Stream: carrier.Stdout, Line: strings.Repeat("é", carrier.MaxLine/2)}
	if err := r.Send(want); err != nil {
		t.Error(err)
	}
	if got := <-lines; got.Kind != want.Kind || got.Stream != want.Stream || got.Line != want.Line {
		t.Errorf("%d bytes of a line", len(got.Line))
	}

	held, err := m.Open(carrier.Head{Kind: carrier.Session}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	held.Write([]byte("x"))
	held.Reset()
	select {
	case <-inside: // its connection ended
	case <-time.After(10 * time.Second):
		t.Error("a session outlives its stream")
	}
}

// B60: only a relay with sessions takes them, and a line is just that.
func TestSessionIsRefused(t *testing.T) {
	_, m := relayed(t, nil, nil)
	if _, err := m.Open(carrier.Head{Kind: carrier.Session}.Encode()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-m.Done():
	case <-time.After(10 * time.Second):
		t.Error("a session is taken that nobody carries")
	}
	for name, text := range map[string]string{
		"two lines": "\x01a\nb", "no stream": "", "another stream": "\x03a", "not UTF-8": "\x01\xff", "long": "\x01" + strings.Repeat("a", carrier.MaxLine+1),
	} {
		if h, err := carrier.Decode(append([]byte{byte(carrier.Output)}, text...)); !errors.Is(err, mux.ErrProtocol) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}
