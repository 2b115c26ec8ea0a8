package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Synopsis gives each command the line of usage that --help has, for its man page.
func Synopsis(cmd *cobra.Command) {
	switch {
	case cmd.HasAvailableSubCommands():
		cmd.Use = cmd.Name() + " COMMAND [FLAGS]"
	case !strings.Contains(cmd.Use, "[FLAGS]"):
		cmd.Use += " [FLAGS]"
	}
	cmd.DisableFlagsInUseLine = true
	for _, c := range cmd.Commands() {
		Synopsis(c)
	}
}
