package cli

import (
	"github.com/spf13/cobra"
)

// firewallCommand is the group of commands about the network policy.
func (a *program) firewallCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "firewall",
		Short: "Look at and change what workers may reach",
		Long: `firewall shows the network policy of a workshop, says why something is allowed
or refused, and changes it while the workers run.`,
		Args: cobra.ArbitraryArgs,
		RunE: unknownCommand,
	}
	cmd.AddCommand(a.firewallVerbs()...)
	return cmd
}

// firewallVerbs are the commands of the group.
func (a *program) firewallVerbs() []*cobra.Command {
	return []*cobra.Command{
		a.firewallAllowCommand(),
		a.firewallDenyCommand(),
		a.firewallReloadCommand(),
		a.firewallLogCommand(),
		a.firewallExplainCommand(),
		a.firewallShowCommand(),
		a.firewallSuggestCommand(),
	}
}
