package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *program) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print the resolved workshop",
		Long: `config prints the workshop with every default filled in, variables resolved,
presets expanded, and the effective container of every worker. The result is a
workshop file itself.

Values of variables stand in it: don't commit it where they are private.`,
		Example: `  workshop config
  workshop config --format json | jq '.workshop.workers[].container.network'`,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.formatOf(cmd)
			if err != nil {
				return err
			}
			resolved, err := a.Config(ctx)
			if err != nil {
				return err
			}
			if format == "json" {
				return a.writeJSON(resolved)
			}
			if err := writeYAML(a.Out, resolved); err != nil {
				return fmt.Errorf("config: %w", err)
			}
			return nil
		}),
	}
}
