package mcpconfig

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Client is an MCP client with a configuration file in a project.
type Client struct {
	Name, Title string
	// File is the file, relative to the root of the project, with slashes.
	File string
	// Key is the key of the file that lists servers by name.
	Key string
	// Note says what else it takes for the client to use the file.
	Note string
	toml bool
}

// Clients are those that are known, by name. Sources, read in November 2026:
// code.claude.com/docs/en/mcp, developers.openai.com/codex/mcp, cursor.com/docs/mcp,
// code.visualstudio.com/docs/agents/reference/mcp-configuration.
func Clients() []Client {
	return []Client{
		{Name: "claude", Title: "Claude Code", File: ".mcp.json", Key: "mcpServers", Note: "Claude Code asks once before it starts a project's servers"},
		{Name: "codex", Title: "Codex", File: ".codex/config.toml", Key: "mcp_servers", Note: "Codex reads the file in projects that it trusts", toml: true},
		{Name: "cursor", Title: "Cursor", File: ".cursor/mcp.json", Key: "mcpServers", Note: "Cursor lists the server in its settings, where it may have to be enabled"},
		{Name: "vscode", Title: "VS Code", File: ".vscode/mcp.json", Key: "servers", Note: "VS Code asks once before it starts the server"},
	}
}

// Server is a server that a client starts, and speaks to over its standard streams.
type Server struct {
	Command string
	Args    []string
	Env     map[string]string
	// Timeout of one call, where the client ends it after a minute by itself; 0: the
	// client's.
	Timeout time.Duration
}

// jsonServer is the form that the clients with JSON share.
type jsonServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

// JSON is the server as clients with JSON list it.
func (s Server) JSON() any { return jsonServer{"stdio", s.Command, s.Args, s.Env} }

// Check refuses a server that the client's file can't hold as it is. The clients with
// JSON replace ${NAME}, and none of them has an escape for it.
func (c Client) Check(s Server) error {
	values := append([]string{s.Command}, s.Args...)
	for name, value := range s.Env {
		values = append(values, name, value)
	}
	for _, v := range values {
		switch {
		case !utf8.ValidString(v):
			return fmt.Errorf("%q is not UTF-8, and %s can't hold it", v, c.File)
		case !c.toml && strings.Contains(v, "${"):
			return fmt.Errorf("%q has a ${, which %s replaces", v, c.Title)
		}
	}
	return nil
}
