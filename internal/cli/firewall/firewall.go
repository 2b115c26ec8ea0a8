package firewall

import (
	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/cli/command"
)

// Command is the group of commands about the network policy.
func Command(p *command.Program) *cobra.Command {
	a := verbs{p}
	cmd := &cobra.Command{
		Use:   "firewall",
		Short: "Look at and change what workers may reach",
		Long: `firewall shows the network policy of a workshop, says why something is allowed
or refused, and changes it while the workers run.`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Unknown,
	}
	cmd.AddCommand(
		a.allowCommand(),
		a.denyCommand(),
		a.reloadCommand(),
		a.logCommand(),
		a.explainCommand(),
		a.exportCommand(),
		a.showCommand(),
		a.suggestCommand(),
	)
	return cmd
}
