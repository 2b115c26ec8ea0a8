package mcpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// conn is the connection to one run of a server, as a transport of the SDK. The
// SDK sees only answers to what it asked; the rest is decided on here.
type conn struct {
	in     *bufio.Reader
	out    io.WriteCloser
	queue  chan []byte // what is to be written
	closed chan struct{}
	once   sync.Once

	changed func() // tools/list_changed

	second                time.Time // when what pace counts began
	unasked, unaskedBytes int

	mu       sync.Mutex
	err      error                     // why it was closed
	asked    map[any]string            // requests of the SDK that wait: the key of their answer
	answers  map[string]expected       // results that are read here, by key
	progress map[string]func(Progress) // by key, which is the token
	garbage  int
}

// Progress of a call, as the server tells it.
type Progress struct {
	Message     string
	Done, Total float64
}

// queueLength is how many messages wait to be written; a server that doesn't
// read makes the next one wait.
const queueLength = 4

func newConn(in io.Reader, out io.WriteCloser, changed func()) *conn {
	c := &conn{in: bufio.NewReaderSize(in, 64<<10), out: out, queue: make(chan []byte, queueLength), closed: make(chan struct{}), changed: changed,
		asked: map[any]string{}, answers: map[string]expected{}, progress: map[string]func(Progress){}}
	go c.write()
	return c
}

// Connect makes conn a transport.
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID is the SDK's wish; a server on a pipe has none.
func (c *conn) SessionID() string { return "" }

// Close ends the connection.
func (c *conn) Close() error { return c.end(nil) }

// end ends the connection; the first reason stays.
func (c *conn) end(err error) error {
	c.once.Do(func() {
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		close(c.closed)
		go c.out.Close() // may wait for a server that doesn't read
	})
	return nil
}

func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// write is the one that writes: the SDK's callers must be able to leave.
func (c *conn) write() {
	for {
		select {
		case <-c.closed:
			return
		case b := <-c.queue:
			if _, err := c.out.Write(b); err != nil {
				c.end(fmt.Errorf("it takes no more input: %w", err))
				return
			}
		}
	}
}

// Write queues a message of the SDK.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.mu.Lock()
		c.asked[r.ID.Raw()] = keyOf(r.Params)
		c.mu.Unlock()
	}
	select {
	case c.queue <- append(b, '\n'):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

// keyOf reads the progress token of a request, by which its caller is known.
func keyOf(params json.RawMessage) string {
	var p struct {
		Meta struct {
			Token string `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	return p.Meta.Token
}

// Read returns the next answer to one of its requests.
func (c *conn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := readLine(c.in, MaxLine)
		if err != nil {
			c.end(err)
			return nil, io.EOF
		}
		if len(line) == 0 {
			c.pace(0)
			continue
		}
		m, err := c.admit(line)
		if err != nil {
			c.end(err)
			return nil, io.EOF
		}
		if m != nil {
			return m, nil
		}
		c.pace(len(line))
	}
}

// What a server may send unasked within a second, in messages and bytes. Beyond
// that nothing of it is read until the second is over: it waits, and not the host.
const (
	maxUnasked      = 500
	maxUnaskedBytes = 4 << 20
)

// pace counts a message that nobody asked for. Only Read calls it.
func (c *conn) pace(size int) {
	if time.Since(c.second) >= time.Second {
		c.second, c.unasked, c.unaskedBytes = time.Now(), 0, 0
	}
	c.unasked++
	c.unaskedBytes += size
	if c.unasked < maxUnasked && c.unaskedBytes < maxUnaskedBytes {
		return
	}
	select {
	case <-c.closed:
	case <-time.After(time.Until(c.second.Add(time.Second))):
	}
}

// admit decides on one line: what the SDK is given, nil for nothing. An error
// ends the connection.
func (c *conn) admit(line []byte) (jsonrpc.Message, error) {
	if line[0] != '{' {
		return nil, c.noMessage(line)
	}
	if depthOf(line) > MaxDepth {
		return nil, fmt.Errorf("it sent a message that is nested deeper than %d", MaxDepth)
	}
	if !json.Valid(line) {
		return nil, c.noMessage(line)
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, c.noMessage(line)
	}
	switch m := m.(type) {
	case *jsonrpc.Response:
		return c.answer(m), nil
	case *jsonrpc.Request:
		if m.IsCall() {
			return nil, c.refuse(m)
		}
		c.notification(m)
	}
	return nil, nil
}

// noMessage counts lines that are no message: some servers write a log there.
func (c *conn) noMessage(line []byte) error {
	if c.garbage++; c.garbage > MaxGarbage {
		return fmt.Errorf("it writes lines that are not MCP to its standard output: %.80q", line)
	}
	return nil
}

// answer passes on what was asked for, once.
func (c *conn) answer(m *jsonrpc.Response) jsonrpc.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, ok := c.asked[m.ID.Raw()]
	if !ok {
		return nil
	}
	delete(c.asked, m.ID.Raw())
	if to, ok := c.answers[key]; ok && m.Error == nil {
		to.result <- m.Result
		delete(c.answers, key)
		m.Result = to.stub
	}
	return m
}

// refuse answers a request of the server: it gets nothing from the host.
func (c *conn) refuse(m *jsonrpc.Request) error {
	r := &jsonrpc.Response{ID: m.ID}
	if m.Method == "ping" {
		r.Result = json.RawMessage("{}")
	} else {
		r.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client offers no " + clean(m.Method, 64)}
	}
	b, err := jsonrpc.EncodeMessage(r)
	if err != nil {
		return err
	}
	select {
	case c.queue <- append(b, '\n'):
		return nil
	default:
		return fmt.Errorf("it asks more than it reads answers")
	}
}

// notification takes what concerns us and drops the rest.
func (c *conn) notification(m *jsonrpc.Request) {
	switch m.Method {
	case "notifications/tools/list_changed":
		c.changed()
	case "notifications/progress":
		var p struct {
			Token    string  `json:"progressToken"`
			Progress float64 `json:"progress"`
			Total    float64 `json:"total"`
			Message  string  `json:"message"`
		}
		if json.Unmarshal(m.Params, &p) != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if tell := c.progress[p.Token]; tell != nil { // it doesn't wait, see relay
			tell(Progress{Message: clean(p.Message, MaxTitle), Done: p.Progress, Total: p.Total})
		}
	}
}

// expected is where a result goes, and what the SDK gets in its place.
type expected struct {
	result chan<- []byte
	stub   json.RawMessage
}

// expect registers for the answer of the request with a key. Its result comes as
// it was sent; the SDK, which would read all of it or nothing, gets the stub
// afterwards. forget ends it.
func (c *conn) expect(key, stub string, progress func(Progress)) (result func() []byte, forget func()) {
	ch := make(chan []byte, 1)
	c.mu.Lock()
	c.answers[key] = expected{ch, json.RawMessage(stub)}
	if progress != nil {
		c.progress[key] = progress
	}
	c.mu.Unlock()
	result = func() []byte {
		select {
		case b := <-ch:
			return b
		default:
			return nil
		}
	}
	return result, func() {
		c.mu.Lock()
		delete(c.answers, key)
		delete(c.progress, key)
		for id, k := range c.asked {
			if k == key {
				delete(c.asked, id)
			}
		}
		c.mu.Unlock()
	}
}
