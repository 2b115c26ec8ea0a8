// Package toolbox runs the tools of a worker, inside of it.
//
// Each session is a process of its own, `workshop-init tools`, that serves one
// connection (package wire) on its standard input and output:
//
//   - on an engine of this machine, PID 1 of the worker starts it for a
//     connection that the host offered (package dialin);
//   - elsewhere the engine starts it (`exec -i`), and carries the bytes.
//
// So a session that runs out of memory or is killed takes nothing along but
// itself. The process is not dumpable: nothing that it runs can look into it or
// write into its connection. It is a subreaper (prctl(2)): what its tools
// start, daemons too, stays below it and ends with it.
//
// What a session may do is in the arguments of PID 1 ([tool.Grant]), not in
// anything that a client sends (B41). The mounts are the boundary: no tool
// checks paths. But a tool runs with what the session's process is, so /proc
// is closed to the file tools, or a client could write the session's memory.
//
// What the tools start carries WORKSHOP_CALL in its environment
// (reaper.MarkEnv): so a cancelled call finds what has left its process group and
// its parent, and PID 1 what a session left that was killed itself. A program
// that does all of that and clears its environment lives until the session ends,
// and where the session is killed, until the worker ends.
//
// Methods:
//
//	hello  {"version", "client", "role": "tools"|"exec"}  → Hello; the first call, once
//	call   {"tool", "arguments"}                          → the tool's result; role tools
//	check  {"tool", "arguments"}                          → {}, or the error that call would be; it changes nothing; role tools
//	exec   Exec                                           → Exit; streams; "$/signal", "$/resize"; role exec
//	connect {"port"}                                      → {}; stdin and stdout are a TCP connection to that port of the
//	                                                         worker's loopback; role exec
//	archive.in  {"dir"}                                   → {}; stdin is a tar stream, unpacked there; role exec
//	archive.out {"path"}                                  → {}; stdout is a tar stream of it; role exec
//	mcp    {"server"}                                     → Exit; stdin and stdout are the server's, calls of tools that
//	                                                         are not offered aside; role tools
//	ping   {}                                             → {}
package toolbox

import "github.com/llmdo/workshop/internal/toolbox/protocol"

// Roles of a session.
const (
	RoleTools = protocol.RoleTools
	RoleExec  = protocol.RoleExec
)

// The parameters and results of the methods.
type (
	Hello   = protocol.Hello
	Welcome = protocol.Welcome
	Call    = protocol.Call
	Exec    = protocol.Exec
	Connect = protocol.Connect
	Exit    = protocol.Exit
	Server  = protocol.Server

	ArchiveIn  = protocol.ArchiveIn
	ArchiveOut = protocol.ArchiveOut
)
