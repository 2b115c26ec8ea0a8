// Package lifecycle has the verbs that bring a workshop up and down and look at
// what runs: up, down, restart, ps, logs.
package lifecycle

import "github.com/llmdo/workshop/internal/cli/command"

// verbs is the program that the verbs of this package are part of.
type verbs struct{ *command.Program }
