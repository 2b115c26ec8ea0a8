// Package wire is the connection between a session on the host and the toolbox
// in a worker: JSON-RPC 2.0 in frames, calls that run at the same time, byte
// streams that belong to a call, and a bound for everything.
//
// A frame is: kind (1 byte), length of the body (4 bytes, big endian), body.
//
//	kind 0  message  one JSON-RPC 2.0 object (no batch), at most MaxMessage bytes, MaxDepth deep
//	kind 1  data     call (4 bytes), stream (1 byte: 0 stdin, 1 stdout, 2 stderr), at most MaxData bytes; none: end of the stream
//	kind 2  credit   call (4 bytes), stream (1 byte), number of bytes (4 bytes) that may be sent more
//
// A sender of a stream begins with Window bytes of credit, so a reader that
// stops stops its stream and no other. The answer of a call is the end of its
// streams and follows their data; otherwise messages overtake data. What
// comes for a call that has ended is dropped, to the credit that it had left.
//
// Anything that isn't this is a desync: an unknown kind, a length that a kind
// doesn't have, a message that isn't a JSON-RPC object, that has a key twice or
// one that JSON-RPC doesn't, data beyond the credit, a call that was never made.
// The connection ends with an error that says so; a client is told before, by
// an error whose id is null.
//
// The ids of calls are numbers from 1 that only the client gives, and that
// grow. Notifications that concern a call name it: "$/cancel" {"id"},
// "$/progress" {"id", …}, "$/signal" {"id", "signal"}, "$/resize" {"id",
// "rows", "cols"}; they have at most MaxNotification bytes, and those that nobody
// knows are ignored.
//
// Nothing is kept without a bound. A peer that doesn't read holds up its own
// calls: their handlers wait in Write or with their answer, and its next calls
// aren't read.
package wire

// Version is the protocol's, in both hellos.
const Version = "1"

// Limits. A peer that exceeds one is cut off; a call too many is answered with
// CodeBusy.
const (
	MaxMessage  = 16 << 20
	MaxDepth    = 64
	MaxData     = 64 << 10
	Window      = 256 << 10
	MaxInFlight = 64
)

// Codes of errors: those of JSON-RPC 2.0 (section 5.1), and ours.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeBusy           = -32001 // too many calls at once
	CodeNotOffered     = -32002 // B41
	CodeToolFailed     = -32003 // the tool ran and says what is wrong
	CodeCancelled      = -32004
	CodeTimeout        = -32005
	CodeNotFound       = -32006 // exec: no such program (127)
	CodeNotExecutable  = -32007 // exec: it can't be executed (126)
	CodeHello          = -32008 // no or an unknown hello
)

// Standard streams of a call.
const (
	Stdin  = 0
	Stdout = 1
	Stderr = 2
)
