// Package tools has the verbs that use the tools of workers: tools offers them to
// an MCP client, call calls one.
package tools

import "github.com/llmdo/workshop/internal/cli/command"

// verbs is the program that the verbs of this package are part of.
type verbs struct{ *command.Program }
