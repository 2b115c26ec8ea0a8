package check

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/cli/command"
)

// Config is the verb config.
func Config(p *command.Program) *cobra.Command {
	a := verbs{p}
	return &cobra.Command{
		Use:   "config",
		Short: "Print the resolved workshop",
		Long: `config prints the workshop with every default filled in, variables resolved,
presets expanded, and the effective container of every worker. The result is a
workshop file itself, unless it has workers of a base or an import: these are shown
with the file that they come from and the tools that they are left, to be read.

It contains the values of variables, tokens among them: none is masked, since the
result is a file to use. Don't commit or publish private ones.`,
		Example: `  workshop config
  workshop config --format json | jq '.workshop.workers[].container.network'`,
		Annotations: command.Formats("yaml", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			resolved, err := a.Config(ctx)
			if err != nil {
				return err
			}
			if format == "json" {
				return a.WriteJSON(resolved)
			}
			if err := a.WriteYAML(resolved); err != nil {
				return fmt.Errorf("config: %w", err)
			}
			return nil
		}),
	}
}
