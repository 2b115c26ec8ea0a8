package credential

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

func (a verbs) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Take a credential back from every workshop, at once",
		Long: `revoke takes back what you agreed to for a credential, in every project, and has
each guard that has it leased forget it within a second; requests that have it are
cut. The next ` + "`up`" + ` that needs it asks again. Your file of credentials stays as it
is, and so does the token itself: one that somebody may have seen has to be revoked by
whoever issued it.`,
		Example:           `  workshop credential revoke github`,
		Args:              command.Args(1, 1),
		ValidArgsFunction: a.completeNames,
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			lines, err := a.RevokeCredential(ctx, args[0])
			switch {
			case err != nil:
				return err
			case lines == 0:
				a.Say("no workshop had %s", app.Printable(args[0]))
			default:
				a.Say("revoked: %s of workshops had %s", app.Count(lines, "line"), app.Printable(args[0]))
			}
			return nil
		}),
	}
}
