// Package protocol is what a host and a worker's toolbox say to each other:
// package toolbox documents the methods. It is apart so that host programs link
// nothing that runs in workers.
package protocol

import (
	"encoding/json"

	"github.com/llmdo/workshop/tool"
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
	// TTY gives the program a terminal, which is its standard input, output and
	// error: what it prints is all on stdout. nil: none.
	TTY *TTY `json:"tty,omitempty"`
}

// Connect are the parameters of connect.
type Connect struct {
	Port uint16 `json:"port"`
}

// TTY is a terminal, and the parameters of "$/resize". Zeros: the size isn't
// known.
type TTY struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// ArchiveOut are the parameters of archive.out.
type ArchiveOut struct {
	Path string `json:"path"`
}

// ArchiveIn are the parameters of archive.in.
type ArchiveIn struct {
	Dir string `json:"dir"`
}

// Exit is how a program ended.
type Exit struct {
	Code   int    `json:"code"` // 128+n where a signal ended it
	Signal string `json:"signal,omitempty"`
	// Note is what of the worker's memory may be why it failed: see [Notes].
	Note string `json:"note,omitempty"`
}

// Server are the parameters of mcp.
type Server struct {
	Server string `json:"server"`
}
