package tools

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// mcpClients are the values of --print-config.
var mcpClients = []string{"claude", "vscode", "cursor", "json"}

// mcpEntry is a stdio server in the configuration of an MCP client. Claude Code
// (.mcp.json), VS Code (.vscode/mcp.json) and Cursor (.cursor/mcp.json) have
// the same entry under keys of their own:
// code.claude.com/docs/en/mcp, code.visualstudio.com/docs/agents/reference/mcp-configuration,
// cursor.com/docs/mcp.
type mcpEntry struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

// printConfig prints what to paste into a client so that it starts `tools`. It
// asks no engine.
func (a verbs) printConfig(client string, s *app.Source, worker string, o options) error {
	name := serverName(s.Workshop.Name.V, worker)
	entry := a.mcpEntry(s, worker, o)
	a.sayWhere(client, name, entry)
	if client == "json" {
		return a.WriteJSON(entry)
	}
	return a.WriteJSON(map[string]any{clientKey(client): map[string]any{name: entry}})
}

// mcpEntry is the command line that a client starts, from whatever directory.
func (a verbs) mcpEntry(s *app.Source, worker string, o options) mcpEntry {
	// A client that a desktop started hasn't the variables of this shell, and SDKs pass
	// few on.
	e := mcpEntry{Type: "stdio", Command: a.executable(), Env: a.Places()}
	if a.Under != "" {
		e.Args = append(e.Args, "workshop")
	}
	e.Args = append(e.Args, "-f", s.Path)
	if a.Settings.Project != "" {
		e.Args = append(e.Args, "-p", a.Settings.Project)
	}
	if a.Settings.Engine != "" {
		e.Args = append(e.Args, "--engine", a.Settings.Engine)
	}
	for _, file := range a.Settings.EnvFiles {
		e.Args = append(e.Args, "--env-file", a.Abs(file))
	}
	e.Args = append(e.Args, "tools")
	e.Args = append(e.Args, o.words()...)
	if worker != "" {
		e.Args = append(e.Args, worker)
	}
	return e
}

// words are the flags as they were given.
func (o *options) words() (words []string) {
	for _, f := range []struct {
		on   bool
		word string
	}{{o.ApproveAll, "--approve-all"}, {o.Strict, "--strict"}, {o.NoUp, "--no-up"}, {o.structured, "--structured"}, {o.Yes, "--yes"}} {
		if f.on {
			words = append(words, f.word)
		}
	}
	return words
}

// serverName is what the server is called in the client. Claude Code keeps the
// name workspace for itself.
func serverName(workshop, worker string) string {
	name := workshop
	if worker != "" {
		name += "-" + worker
	}
	if name == "workspace" {
		return "workspace-workshop"
	}
	return name
}

// sayWhere says on the standard error where the text belongs.
func (a verbs) sayWhere(client, name string, entry mcpEntry) {
	if a.Quiet {
		return
	}
	var hints []string
	switch client {
	case "claude":
		line, err := json.Marshal(entry)
		if err != nil {
			return
		}
		hints = []string{
			"Claude Code: for this project and you alone: claude mcp add-json " + shellquote.Quote(name) + " " + shellquote.Quote(string(line)),
			"or put the text into .mcp.json at the root of the project; it names paths of this machine",
		}
	case "vscode":
		hints = []string{"VS Code: put the text into .vscode/mcp.json of the folder, or into the file that the command \"MCP: Open User Configuration\" opens; it names paths of this machine"}
	case "cursor":
		hints = []string{"Cursor: put the text into .cursor/mcp.json of the project, or into ~/.cursor/mcp.json for all; it names paths of this machine"}
	case "json":
		hints = []string{"one entry, for the place where the client lists its stdio servers; call it " + name}
	}
	if client != "json" {
		hints = append(hints, fmt.Sprintf("where the file is there already, add the entry to its %q", clientKey(client)))
	}
	for _, h := range hints {
		a.Say("%s", h)
	}
}

// clientKey is the key below which a client lists its servers.
func clientKey(client string) string {
	if client == "vscode" {
		return "servers"
	}
	return "mcpServers"
}

// executable is the absolute path by which this program was called: a link that a
// package manager keeps stays one, so that the next version is found as well.
func (a verbs) executable() string {
	if a.Executable != "" {
		return a.Executable
	}
	return strings.TrimSpace(a.Under + "workshop")
}
