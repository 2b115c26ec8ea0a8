// Package mcpconfig edits the configuration files of MCP clients as text: one server is
// added, replaced or removed, and every other byte stays. The files may be hostile: they
// are bounded, and an edit that would change anything else is refused.
package mcpconfig
