package worker

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// shellLine starts the best shell of the image.
const shellLine = `command -v bash >/dev/null 2>&1 && exec bash; exec sh`

// Shell is the verb shell.
func Shell(p *command.Program) *cobra.Command {
	a := verbs{p}
	o := execOptions{refused: true}
	cmd := &cobra.Command{
		Use:   "shell WORKER",
		Short: "Open a shell in a worker",
		Long: `shell opens bash, or else sh, in a worker that is up, with the same files,
limits and network names that the worker has.

On a terminal, each new refusal of the guard is one line there within a second:
what, why, and the command that allows it; the same target once a minute, and 20
a minute at most. Lines wait while a full-screen program runs. When the shell
ends, refusals that were not shown yet are listed. --quiet turns both off.`,
		Example:           `  workshop shell greeter`,
		Args:              command.Args(1, 1),
		ValidArgsFunction: a.CompleteWorkers(1),
		Annotations:       command.PassesExitCode(),
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			err := a.exec(ctx, args[0], []string{"sh", "-c", shellLine}, o)
			if f, ok := err.(*app.Failure); ok && f.Code == 127 && f.Err != nil {
				f.Hint("its image has no shell; run one of its programs with `workshop exec %s -- PROGRAM`", args[0])
			}
			return err
		}),
	}
	o.flags(cmd)
	return cmd
}
