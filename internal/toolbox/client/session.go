package client

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// Session is for several commands and connections at a time. All of them end with it.
type Session struct{ client *wire.Conn }

// Open begins a session. conn is closed by [Session.Close], or with an error.
func Open(ctx context.Context, conn io.ReadWriteCloser, name string) (*Session, error) {
	client, err := greet(ctx, conn, name)
	if err != nil {
		return nil, err
	}
	return &Session{client}, nil
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.client.Done() }

// Close ends the session.
func (s *Session) Close() error { return s.client.Close() }

// Exec is [Exec] in this session, which goes on.
func (s *Session) Exec(ctx context.Context, c Command) (code int, err error) {
	defer func() { code, err = ofExec(code, err) }()
	return s.exec(ctx, c)
}

// Dial connects to a port of the worker's loopback. That nothing listens there is what the
// first Read returns.
func (s *Session) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	own, cancel := context.WithCancel(context.Background())
	call, err := s.client.Start(own, "connect", protocol.Connect{Port: port})
	if err != nil {
		cancel()
		return nil, err
	}
	c := &tunnel{call: call, in: call.Stream(wire.Stdin), out: call.Stream(wire.Stdout), cancel: cancel}
	if ctx.Err() != nil {
		c.Close()
		return nil, context.Cause(ctx)
	}
	return c, nil
}

// tunnel is a connection to a port of a worker. It has no deadlines.
type tunnel struct {
	call    *wire.Outgoing
	in, out io.ReadWriteCloser
	cancel  context.CancelFunc
}

func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.out.Read(p)
	if err == io.EOF { // an answer ends the stream, whatever it is
		if failed := t.call.Wait(nil); failed != nil {
			err = failed
		}
	}
	return n, err
}

func (t *tunnel) Write(p []byte) (int, error) { return t.in.Write(p) }

// CloseWrite says that nothing more is written.
func (t *tunnel) CloseWrite() error { return t.in.Close() }

func (t *tunnel) Close() error {
	t.cancel()
	return nil
}

type tunnelAddr struct{}

func (tunnelAddr) Network() string { return "worker" }
func (tunnelAddr) String() string  { return "worker" }

func (t *tunnel) LocalAddr() net.Addr  { return tunnelAddr{} }
func (t *tunnel) RemoteAddr() net.Addr { return tunnelAddr{} }

func (t *tunnel) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (t *tunnel) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (t *tunnel) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
