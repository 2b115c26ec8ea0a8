package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Error is an error of JSON-RPC.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// LostError is the end of a connection while a call was under way.
type LostError struct {
	Cause error // why the connection ended
	// Sent: the other side may have got the call, and nobody knows how far it
	// came. Without, it certainly didn't: the call can be made again.
	Sent bool
}

func (e *LostError) Error() string {
	if e.Sent {
		return fmt.Sprintf("the connection ended during the call, which may have been executed in part: %v", e.Cause)
	}
	return fmt.Sprintf("the connection ended before the call was sent: %v", e.Cause)
}

func (e *LostError) Unwrap() error { return e.Cause }

// Why a connection or a call ended, other than by an error of the system.
var (
	// ErrClosed: this side closed the connection.
	ErrClosed = errors.New("the connection was closed here")
	// ErrPeerClosed: the peer closed the connection, between two frames.
	ErrPeerClosed = errors.New("the peer closed the connection")
	// ErrCancelled is the cause of a handler's context whose call the client cancelled.
	ErrCancelled = errors.New("the call was cancelled")
	// ErrCallEnded: a stream or a notification of a call that has ended.
	ErrCallEnded = errors.New("the call has ended")
)
