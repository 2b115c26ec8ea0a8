// Package check has the verbs that write, check and translate the files of a
// workshop and start nothing: init, validate, config, compile, check-result; and
// capabilities, which checks this machine.
package check

import "github.com/llmdo/workshop/internal/cli/command"

// verbs is the program that the verbs of this package are part of.
type verbs struct{ *command.Program }
