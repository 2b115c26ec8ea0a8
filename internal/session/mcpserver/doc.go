// Package mcpserver offers a session's Host as an MCP server over one pair of
// streams, standard input and output as a rule, by the official Go SDK.
//
// The SDK speaks the protocol; what a client may cost is bounded here, in front
// of it: the SDK has no bound for calls at once, queues what it can't handle
// yet without one, and ends the session at a line that isn't JSON. Here such a
// line is answered, and the session goes on (B60):
//
//	a line of more than MaxLine bytes       error -32600, the rest of it is thrown away unread
//	no JSON, no UTF-8, deeper than MaxDepth error -32700
//	no request, a batch, an id used twice   error -32600
//	more than MaxInFlight calls at once, or
//	of more than MaxInFlightBytes together  error -32001 (busy)
//	notifications that nothing waits for    dropped
//
// A client that stops reading stops what it would be answered: what waits for it
// are the results of MaxInFlight calls at most, each no larger than what a worker
// may send (wire.MaxMessage) and its text, and one of them encoded. Its session
// ends when nothing was read for Stall.
//
// The protocol's versions are those with a handshake (2024-11-05 to
// 2025-11-25): approvals are asked of the client in mid-call, by elicitation,
// which 2026-07-28 has no requests for. A client of that version is answered
// with the newest of these.
package mcpserver

import "time"

// Limits of a client.
const (
	MaxLine          = 16 << 20
	MaxDepth         = 64
	MaxInFlight      = 64
	MaxInFlightBytes = 64 << 20
	// MaxQuestion is the longest text that a person is asked about; what is longer
	// is refused, for nobody would have read it.
	MaxQuestion = 256 << 10
	// Stall is how long one answer may wait for a client that doesn't read.
	Stall = 5 * time.Minute
	// Grace is how long calls may go on after the end of the input, so that
	// requests from a file are answered, and how long they may take to end.
	Grace = 2 * time.Second
	// Beat is how often a client that wants progress hears of a call that has
	// nothing to tell: many end a call that is silent for a minute.
	Beat = 10 * time.Second
)
