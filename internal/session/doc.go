// Package session is the host's side of tools: it connects to the toolboxes of
// a workshop's workers, decides what may run (B41, B42), and writes down what
// did. `workshop tools`, `call` and package client are three faces of one
// [Host].
//
//	approval    which call needs a person's yes, and who is asked
//	callrule    which calls a rule of approvals is about
//	shellline   which lines of a shell are one plain command
//	audit       the log of calls and decisions
//	mcpclient   MCP servers that run in workers
//	mcpserver   a Host as an MCP server
//
// A call goes this way: is it offered, do its arguments fit, may it run
// (approval), is it written down (audit); then it is executed, at most once, and
// its end is written down.
package session
