// Package session is the host's side of tools: it connects to the toolboxes of
// a workshop's workers, decides what may run (B41, B42), and writes down what
// did. `workshop tools`, `call` and package client are three faces of one
// [Host].
//
//	approval    which call needs a person's yes, and who is asked
//	audit       the log of calls and decisions
//	inside      MCP servers that run in workers
//	mcpserver   a Host as an MCP server
package session
