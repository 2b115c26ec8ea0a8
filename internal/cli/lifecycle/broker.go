package lifecycle

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Broker is the process that leases credentials; `up` starts it.
func Broker(p *command.Program) *cobra.Command {
	return &cobra.Command{
		Use:    app.BrokerVerb,
		Short:  "Lease credentials to a workshop's guard",
		Hidden: true,
		RunE: p.Run(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return p.Broker(ctx, p.In, p.Out)
		}),
	}
}
