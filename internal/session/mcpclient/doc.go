// Package mcpclient is the client of MCP servers that run in workers. A server
// there is started when it is first needed, kept, and started again when it has
// ended.
//
// A server is not trusted: what it sends is bounded (limits below), its names,
// texts and schemas are checked before anybody sees them, and it gets nothing
// from the host: requests for sampling, elicitation and roots are refused. What
// it says about its tools (annotations) is a hint for a person, never a reason
// to run one without a yes.
//
// The official SDK is the client; this package is between it and the server
// (conn), because the SDK queues whatever comes.
package mcpclient

import "time"

// Limits of what a server may send. Beyond them a line or the list ends the
// server, a tool isn't offered, a text is cut.
const (
	MaxLine        = 4 << 20  // bytes of one message, so of a result
	MaxDepth       = 64       // of objects and lists in each other in a message
	MaxTools       = 256      // of one server
	MaxPages       = 64       // of its list
	MaxToolName    = 64       // of [a-zA-Z0-9_-]
	MaxDescription = 4 << 10  // bytes; longer ones are cut
	MaxTitle       = 200      // bytes; longer ones are cut
	MaxSchema      = 64 << 10 // bytes of a tool's schema
	MaxSchemaDepth = 32
	MaxBlocks      = 1000 // of content in a result
	MaxGarbage     = 100  // lines that are no message, as a log is; they are passed over
	MaxArguments   = 4 << 20
	MaxCalls       = 16 // at a time; one more waits
)

// Times of a server.
const (
	// StartTime is how long a server may take until it has listed its tools. It
	// goes on where nobody waits any more.
	StartTime = 2 * time.Minute
	// failedFor is how long a server that didn't start isn't started again.
	failedFor = 10 * time.Second
	// endTime is how long an ended server's exit is waited for.
	endTime = time.Second
)
