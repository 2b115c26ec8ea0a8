package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/engine"
)

func (a *program) logsCommand() *cobra.Command {
	var o engine.LogsOptions
	noPrefix := false
	cmd := &cobra.Command{
		Use:   "logs [WORKER…]",
		Short: "Show what workers, guard and rooms wrote",
		Long: `logs shows what the containers of a workshop wrote to their standard output.
The lines of the guard are events in JSON, one for each denied connection.

-f is --follow here, as in Compose; the workshop file is --file, or -f before
the command.`,
		Example: `  workshop logs
  workshop logs -f guard
  workshop logs --tail 20 greeter`,
		Args:              usageArgs(0, -1),
		ValidArgsFunction: a.completeServices,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			o.Prefix, o.Stdout, o.Stderr = !noPrefix, a.Out, a.Err
			return a.Logs(ctx, args, a.globals.project != "", o)
		}),
	}
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on until interrupted")
	cmd.Flags().StringVarP(&o.Tail, "tail", "n", "all", "number of lines from the end of each log")
	cmd.Flags().StringVar(&o.Since, "since", "", "only what is newer: a time (RFC 3339) or a duration like 10m")
	cmd.Flags().BoolVarP(&o.Timestamps, "timestamps", "t", false, "begin each line with its time")
	cmd.Flags().BoolVar(&noPrefix, "no-log-prefix", false, "no worker's name before each line")
	return cmd
}
