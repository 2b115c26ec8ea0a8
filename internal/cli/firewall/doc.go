// Package firewall has the verbs about what workers may reach: firewall with its
// commands, which show, explain and change the policy, and presets.
package firewall

import "github.com/llmdo/workshop/internal/cli/command"

// verbs is the program that the verbs of this package are part of.
type verbs struct{ *command.Program }
