//go:build linux

package toolbox

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// TestConnect: bytes go both ways, each end is seen by the other side, and nothing that
// listens nowhere hangs.
func TestConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan error, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, err := io.Copy(c, c) // to the end of what is sent
				c.Close()
				ended <- err
			}()
		}
	}()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	c := here(t, RoleExec)
	text := strings.Repeat("0123456789abcdef", 1<<17)
	o, err := c.Start(within(t, 20*time.Second), "connect", Connect{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		in := o.Stream(wire.Stdin)
		io.WriteString(in, text)
		in.Close()
	}()
	back, err := io.ReadAll(o.Stream(wire.Stdout))
	if string(back) != text || err != nil || o.Wait(nil) != nil {
		t.Errorf("%d bytes of %d, %v, %v", len(back), len(text), err, o.Wait(nil))
	}
	if err := <-ended; err != nil {
		t.Errorf("the server: %v", err)
	}

	// The host goes: so does the connection.
	ctx, cancel := context.WithCancel(within(t, 20*time.Second))
	defer cancel()
	if o, err = c.Start(ctx, "connect", Connect{Port: port}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o.Stream(wire.Stdin), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(o.Stream(wire.Stdout), make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("a connection outlives the host's")
	}

	l.Close()
	for _, test := range []struct {
		to   Connect
		code int
		says string
	}{
		{Connect{Port: port}, wire.CodeToolFailed, "refused"},
		{Connect{}, wire.CodeInvalidParams, "port is 0"},
	} {
		wants(t, c.Call(within(t, 20*time.Second), "connect", test.to, nil), test.code, test.says)
	}
	wants(t, here(t, RoleTools).Call(within(t, 20*time.Second), "connect", Connect{Port: port}, nil), wire.CodeInvalidRequest, "has no connect")
}

// here is a session whose worker is this process, so that the test's network is its own.
func here(t *testing.T, role string) *wire.Conn {
	s, err := newSession(tool.Grant{})
	if err != nil {
		t.Fatal(err)
	}
	host, worker := net.Pipe()
	served := make(chan struct{})
	go func() { defer close(served); _ = wire.Serve(context.Background(), worker, s.handle) }()
	c := wire.NewClient(host)
	t.Cleanup(func() { c.Close(); <-served; s.null.Close() })
	if err := c.Call(within(t, 20*time.Second), "hello", Hello{Version: wire.Version, Role: role}, nil); err != nil {
		t.Fatal(err)
	}
	return c
}
