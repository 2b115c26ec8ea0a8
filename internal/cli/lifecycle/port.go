package lifecycle

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Port is the verb port.
func Port(p *command.Program) *cobra.Command {
	a := verbs{p}
	release := false
	cmd := &cobra.Command{
		Use:   "port WORKER [TARGET]",
		Short: "Print where a worker's port is published",
		Long: `port prints the address of this machine at which the port TARGET of a running
worker is published; without TARGET, those of all of its ports.

A port that the file leaves open, with "0:8080" or ` + "`published: auto`" + `, has the same
number at each ` + "`up`" + ` of this checkout. --release gives the number up: the next ` + "`up`" + `
chooses one that is free then. Of a workshop that is down it also gives up what its file
reserves, until its next ` + "`up`" + `.`,
		Example: `  curl http://$(workshop port preview 8080)
  workshop port preview              # 8080/tcp -> 127.0.0.1:26512
  workshop port --release preview 8080`,
		Args:              command.Args(1, 2),
		ValidArgsFunction: a.CompleteWorkers(1),
		Annotations:       command.Formats("text", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			target := uint16(0)
			if len(args) > 1 {
				n, err := strconv.ParseUint(strings.TrimSuffix(args[1], "/tcp"), 10, 16)
				if err != nil || n == 0 {
					return command.UsageError(cmd, "port: %q is not a port of a worker", args[1])
				}
				target = uint16(n)
			}
			if release {
				return a.ReleasePorts(ctx, args[0], target)
			}
			all, err := a.PublishedPorts(ctx, args[0], target, a.ProjectGiven())
			if err != nil {
				return err
			}
			return a.published(format, all, target != 0)
		}),
	}
	cmd.Flags().BoolVar(&release, "release", false, "give up the number of a port: the next up chooses one")
	return cmd
}

func (a verbs) published(format string, all []app.PublishedPort, one bool) error {
	if format == "json" {
		if all == nil {
			all = []app.PublishedPort{}
		}
		return a.WriteJSON(all)
	}
	for _, p := range all {
		if one {
			fmt.Fprintln(a.Out, app.Printable(p.Address))
			break // as in Compose
		}
		fmt.Fprintf(a.Out, "%d/tcp -> %s\n", p.Target, app.Printable(p.Address))
	}
	return nil
}
