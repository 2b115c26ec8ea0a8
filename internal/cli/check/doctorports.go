package check

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/doctor"
)

// doctorPortsCommand is the verb doctor ports.
func (a verbs) doctorPortsCommand() *cobra.Command {
	fix := false
	cmd := &cobra.Command{
		Use:   "ports",
		Short: "Find what is wrong with published ports on this machine",
		Long: `doctor ports compares the registry of your ports (` + "`workshop ports`" + `) with the files of
your workshops, and with the programs and Compose containers of this machine. It finds
numbers that two want or that another program has, ports that other machines reach,
leases that nothing needs, and workshops that are up without their port.

With --fix it gives up leases of directories that are gone, and of ports that a file
doesn't have any more while its workshop is down. It changes nothing else, and ends no
program. The exit code is 1 if something was found and is left, 0 if not.`,
		Example: `  workshop doctor ports
  workshop doctor ports --fix
  workshop doctor ports --format json       # in continuous integration`,
		Annotations: command.Formats("text", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			r, err := a.DoctorPorts(ctx, fix)
			if err != nil {
				return err
			}
			if format == "json" {
				err = a.WriteJSON(r)
			} else {
				a.printPorts(r)
			}
			if err == nil && len(r.Findings) > 0 {
				err = app.Exit(app.CodeFailed)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "give up leases that nothing needs")
	return cmd
}

func (a verbs) printPorts(r app.PortsReport) {
	for _, why := range r.Unseen {
		a.Warn("not compared: %s", why)
	}
	for _, f := range r.Fixed {
		a.doctorLine(doctor.OK, "fixed: "+f.Text, "")
	}
	plain := make([]doctor.Finding, len(r.Findings))
	for i, f := range r.Findings {
		plain[i] = f.Finding
		do := f.Do
		if i+1 < len(r.Findings) && r.Findings[i+1].Do == do {
			do = "" // once, below the last that it helps against
		}
		a.doctorLine(f.Level, f.Name+": "+f.Text, do)
	}
	a.Say("%s; %s", app.Count(r.Checked, "port")+" of workshops looked at", doctorSummary(plain))
}
