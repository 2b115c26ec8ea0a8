package lifecycle

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/engine"
)

// Logs is the verb logs.
func Logs(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o engine.LogsOptions
	noPrefix := false
	cmd := &cobra.Command{
		Use:   "logs [WORKER...]",
		Short: "Show what workers, guard and rooms wrote",
		Long: `logs shows what the containers of a workshop wrote to their standard output.
The lines of the guard are events in JSON: what it denied and allowed, the ends of
connections, and notes. ` + "`firewall log`" + ` shows them to be read.

-f is --follow here, as in Compose; the workshop file is --file, or -f before
the command.`,
		Example: `  workshop logs
  workshop logs -f guard
  workshop logs --tail 20 greeter`,
		Args:              command.Args(0, -1),
		ValidArgsFunction: a.completeServices,
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			o.Prefix, o.Stdout, o.Stderr = !noPrefix, a.Out, a.Err
			return a.Logs(ctx, args, a.ProjectGiven(), o)
		}),
	}
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on until interrupted")
	cmd.Flags().StringVarP(&o.Tail, "tail", "n", "all", "number of lines from the end of each log")
	cmd.Flags().StringVar(&o.Since, "since", "", "only what is newer: a time (RFC 3339) or a duration like 10m")
	cmd.Flags().BoolVarP(&o.Timestamps, "timestamps", "t", false, "begin each line with its time")
	cmd.Flags().BoolVar(&noPrefix, "no-log-prefix", false, "no worker's name before each line")
	return cmd
}

// completeServices completes workers, rooms and the guard.
func (a verbs) completeServices(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	names := a.WorkerNames(cmd)
	if s := a.CompletionSource(cmd); s != nil {
		if c, err := compose.Compile(s.Workshop); err == nil {
			names = slices.Sorted(maps.Keys(c.Roles))
		}
	}
	return command.Beginning(prefix, args, names), cobra.ShellCompDirectiveNoFileComp
}
