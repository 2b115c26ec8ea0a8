package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// conn is the SDK's connection, and its transport.
type conn struct {
	in    io.ReadCloser
	out   io.WriteCloser
	stall time.Duration
	most  int // bytes of calls under way

	incoming chan jsonrpc.Message
	ended    chan struct{} // there is no more input, or no more output
	closed   chan struct{}
	closing  sync.Once

	mu      sync.Mutex
	calls   map[jsonrpc.ID]*underway
	bytes   int
	greeted bool // notifications/initialized has passed
	err     error
	ending  sync.Once

	writing sync.Mutex
}

// underway is a request of the client that isn't answered yet.
type underway struct {
	bytes     int
	cancelled bool
}

func newConn(in io.ReadCloser, out io.WriteCloser) *conn {
	return &conn{in: in, out: out, stall: Stall, most: MaxInFlightBytes,
		incoming: make(chan jsonrpc.Message), ended: make(chan struct{}), closed: make(chan struct{}),
		calls: map[jsonrpc.ID]*underway{}}
}

// Connect is that of mcp.Transport.
func (c *conn) Connect(context.Context) (mcp.Connection, error) {
	go c.read()
	return c, nil
}

func (c *conn) SessionID() string { return "" }

// Read is that of mcp.Connection.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.incoming:
		return m, nil
	case <-c.ended:
	case <-c.closed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return nil, io.EOF
}

// read passes on what a client may ask, until the end of the input.
func (c *conn) read() {
	l := newLines(c.in)
	for {
		line, err := l.next()
		if err != nil && !errors.Is(err, errLong) {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("reading from the client: %w", err)
			}
			c.drain()
			c.end(err)
			return
		}
		m, refused := c.admit(line, err)
		if refused != nil {
			if c.send(refused, nil) != nil {
				return
			}
		}
		if m == nil {
			continue
		}
		select {
		case c.incoming <- m:
		case <-c.closed:
			return
		}
	}
}

// drain waits until all calls are answered, but not for long.
func (c *conn) drain() {
	for end := time.Now().Add(Grace); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		c.mu.Lock()
		n := len(c.calls)
		c.mu.Unlock()
		select {
		case <-c.closed:
			return
		default:
		}
		if n == 0 {
			return
		}
	}
}

// end says that the client has gone; the first reason counts.
func (c *conn) end(err error) {
	c.ending.Do(func() {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		close(c.ended)
	})
}

// failure is why the client has gone; nil where it closed its side.
func (c *conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Write is that of mcp.Connection.
func (c *conn) Write(_ context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return c.send(m, nil)
	}
	if !c.answer(r) {
		return nil
	}
	return c.send(r, func() { c.settle(r.ID) })
}

// send writes a message; before is called just before it goes out. Each is
// encoded in its turn: at most one lies here encoded, however many wait.
func (c *conn) send(m jsonrpc.Message, before func()) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	select {
	case <-c.closed:
		return io.ErrClosedPipe
	default:
	}
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if before != nil {
		before()
	}
	stalled := time.AfterFunc(c.stall, func() {
		c.end(fmt.Errorf("the client has read nothing for %v: its session is over", c.stall))
	})
	defer stalled.Stop()
	if _, err = c.out.Write(append(line, '\n')); err != nil {
		c.end(fmt.Errorf("writing to the client: %w", err))
	}
	return err
}

// Close is that of mcp.Connection.
func (c *conn) Close() error {
	c.closing.Do(func() {
		close(c.closed)
		c.end(nil)
		_ = c.in.Close()
		_ = c.out.Close()
	})
	return nil
}
