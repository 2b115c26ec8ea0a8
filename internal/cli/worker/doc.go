// Package worker has the verbs that work in one running worker: exec and shell run
// a command there, cp copies files.
package worker

import "github.com/llmdo/workshop/internal/cli/command"

// verbs is the program that the verbs of this package are part of.
type verbs struct{ *command.Program }
