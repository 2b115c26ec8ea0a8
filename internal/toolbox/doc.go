// Package toolbox runs the tools of a worker, inside of it.
//
// Each session is a process of its own, `workshop-init tools`, that serves one
// connection (package wire) on its standard input and output:
//
//   - on an engine of this machine, PID 1 of the worker starts it for a
//     connection that the host offered (package door);
//   - elsewhere the engine starts it (`exec -i`), and carries the bytes.
//
// So a session that runs out of memory or is killed takes nothing along but
// itself. The process is not dumpable: nothing that it runs can look into it or
// write into its connection. It is a subreaper (prctl(2)): what its tools
// start, daemons too, stays below it and ends with it.
//
// What a session may do stands in the arguments of PID 1 ([tool.Grant]), not in
// anything that a client sends (B41). The mounts are the boundary: no tool
// checks paths. But a tool runs with what the session's process is, so /proc
// is closed to the file tools, or a client could write the session's memory.
//
// Methods:
//
//	hello  {"version", "client", "role": "tools"|"exec"}  → Hello; the first call, once
//	call   {"tool", "arguments"}                          → the tool's result; role tools
//	exec   Exec                                           → Exit; streams; "$/signal"; role exec
//	mcp    {"server"}                                     → Exit; stdin and stdout are the server's; role tools
//	ping   {}                                             → {}
package toolbox

import (
	"encoding/json"

	"github.com/llmdo/workshop/internal/tool"
)

// Roles of a session. exec is a person's `workshop exec`, no tool of a worker:
// it runs what it is asked to and offers no tool.
const (
	RoleTools = "tools"
	RoleExec  = "exec"
)

// Hello is the first call's parameters.
type Hello struct {
	Version string `json:"version"`
	Client  string `json:"client,omitempty"`
	Role    string `json:"role"`
}

// Welcome answers it.
type Welcome struct {
	Version string     `json:"version"`
	Grant   tool.Grant `json:"grant"`
	Workdir string     `json:"workdir"`
	// Instance names this run of the worker: another one after a restart. Empty:
	// not known. OOMKills is how many processes of the worker the kernel has
	// killed because its memory was over (oom_kill in memory.events of its
	// cgroup); -1: not known. By both a client can tell why a session was lost.
	Instance string `json:"instance,omitempty"`
	OOMKills int64  `json:"oom_kills"`
}

// Call are the parameters of call.
type Call struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Exec are the parameters of exec.
type Exec struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"` // KEY=VALUE, added to the worker's
	Cwd  string   `json:"cwd,omitempty"`
	// Stdin: the client sends the stream; without, it is empty.
	Stdin bool `json:"stdin,omitempty"`
}

// Exit is how a program ended.
type Exit struct {
	Code   int    `json:"code"` // 128+n where a signal ended it
	Signal string `json:"signal,omitempty"`
}

// Server are the parameters of mcp.
type Server struct {
	Server string `json:"server"`
}
