package wire

import (
	"context"
	"encoding/json"
	"io"
)

// Error is an error of JSON-RPC.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Handler answers one call. ctx ends when the call is cancelled or the
// connection ends. What it returns is marshalled; an [*Error] goes out as it
// is, any other error as CodeInternal. The connection waits for its handlers.
type Handler func(ctx context.Context, c *Incoming) (any, error)

// Incoming is a call that a server answers.
type Incoming struct {
	Method string
	Params json.RawMessage
	// unexported: connection, id, streams
}

// Stream gives a stream of the call: stdin can be read, stdout and stderr be
// written. Writing waits for credit; it fails when the connection has ended.
// What isn't closed is closed when the handler has returned.
func (c *Incoming) Stream(n byte) io.ReadWriteCloser { panic("not built") }

// Notify sends a notification about the call, such as "$/progress"; params
// must be an object and gets the call's id.
func (c *Incoming) Notify(method string, params map[string]any) error { panic("not built") }

// Notified delivers notifications of the client about the call ("$/signal").
func (c *Incoming) Notified() <-chan Notification { panic("not built") }

// Notification is a message without an answer.
type Notification struct {
	Method string
	Params json.RawMessage
}

// Conn is one side of a connection. It is safe for use by several goroutines.
type Conn struct{}

// Serve answers calls until the connection ends, and returns why: nil where
// the client has closed it between two frames. When it returns, all handlers
// have.
func Serve(ctx context.Context, rwc io.ReadWriteCloser, h Handler) error { panic("not built") }

// NewClient makes the client's side.
func NewClient(rwc io.ReadWriteCloser) *Conn { panic("not built") }

// Call makes a call and waits for its answer. When ctx ends, the call is
// cancelled and Call returns ctx's cause at once; the answer is thrown away.
// A connection that ends meanwhile is a [*LostError].
func (c *Conn) Call(ctx context.Context, method string, params, result any) error { panic("not built") }

// Start makes a call that has streams or notifications.
func (c *Conn) Start(ctx context.Context, method string, params any) (*Outgoing, error) {
	panic("not built")
}

// Outgoing is a call that a client made.
type Outgoing struct{}

// Stream gives a stream of the call: stdin can be written, stdout and stderr
// be read (io.EOF at their end).
func (o *Outgoing) Stream(n byte) io.ReadWriteCloser { panic("not built") }

// Notify sends a notification about the call.
func (o *Outgoing) Notify(method string, params map[string]any) error { panic("not built") }

// Notified delivers notifications about the call; the oldest are dropped where
// nobody takes them.
func (o *Outgoing) Notified() <-chan Notification { panic("not built") }

// Wait waits for the answer. The streams may still hold bytes then.
func (o *Outgoing) Wait(result any) error { panic("not built") }

// Done is closed when the connection has ended; Err says why.
func (c *Conn) Done() <-chan struct{} { panic("not built") }

// Err is nil until Done.
func (c *Conn) Err() error { panic("not built") }

// Close ends the connection and every call on it.
func (c *Conn) Close() error { panic("not built") }

// LostError is the end of a connection while a call was under way: nobody
// knows how far it came.
type LostError struct{ Cause error }

func (e *LostError) Error() string { return "the connection ended in mid-call" }
func (e *LostError) Unwrap() error { return e.Cause }
