package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// synopsis is how a command is called, from its name on.
func synopsis(cmd *cobra.Command) string {
	switch {
	case cmd.HasAvailableSubCommands():
		return cmd.Name() + " COMMAND [FLAGS]"
	case !strings.Contains(cmd.Use, "[FLAGS]"):
		return cmd.Use + " [FLAGS]"
	}
	return cmd.Use
}

// Synopsis gives each command the line of usage that --help has, for its man page.
func Synopsis(cmd *cobra.Command) {
	cmd.Use, cmd.DisableFlagsInUseLine = synopsis(cmd), true
	for _, c := range cmd.Commands() {
		Synopsis(c)
	}
}
