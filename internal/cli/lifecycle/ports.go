package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
)

// Ports is the verb ports.
func Ports(p *command.Program) *cobra.Command {
	a := verbs{p}
	return &cobra.Command{
		Use:   "ports",
		Short: "List which workshops have which ports of this machine",
		Long: `ports lists the registry of your ports: each number that a workshop.yaml of yours
reserves, or that was chosen where it leaves the number open, with the worker that has
it, since when, and who else reserves it. ` + "`up`" + ` registers the ports of a workshop; they
stay registered after ` + "`down`" + `, so that a chosen number is the same again. It needs no
workshop.yaml. With --quiet it prints the addresses alone.

` + "`workshop doctor ports`" + ` compares the registry with what programs really listen on.`,
		Example: `  workshop ports
  workshop ports --format json
  workshop port --release preview 8080   # another number at the next up`,
		Annotations: command.Formats("table", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			all, err := a.RegisteredPorts(ctx)
			switch {
			case err != nil:
				return err
			case format == "json":
				return a.WriteJSON(all)
			case a.Quiet:
				for _, p := range all {
					fmt.Fprintln(a.Out, p.Address)
				}
				return nil
			case len(all) == 0:
				a.Say("no port is registered: `workshop up` registers those of a workshop")
				return nil
			}
			if columns := a.Columns(a.Out); columns > 0 && columns < tableColumns {
				return a.portBlocks(all, a.Table())
			}
			return a.portTable(all, a.Table())
		}),
	}
}

func (a verbs) portTable(all []app.RegisteredPort, w *terminal.Table) error {
	fmt.Fprintln(w, "ADDRESS\tPROJECT\tWORKER\tNUMBER\tSINCE\tSTATE\tALSO\tDIRECTORY")
	for _, p := range all {
		fmt.Fprintln(w, strings.Join([]string{p.Address, app.Printable(p.Project), workerPort(p), numberText(p), sinceText(p), p.State, alsoText(p), a.shownDir(app.Workshop{Directory: p.Directory})}, "\t"))
	}
	return w.Flush()
}

// portBlocks is the list for a narrow terminal: lines that are wrapped as they are.
func (a verbs) portBlocks(all []app.RegisteredPort, w *terminal.Table) error {
	for _, p := range all {
		parts := []string{workerPort(p) + " of " + app.Printable(p.Project), numberText(p)}
		if since := sinceText(p); since != "" {
			parts[1] += " since " + since
		}
		parts = append(parts, p.State)
		if also := alsoText(p); also != "" {
			parts = append(parts, "also "+also)
		}
		fmt.Fprintln(w, p.Address+": "+strings.Join(append(parts, a.shownDir(app.Workshop{Directory: p.Directory})), "; "))
	}
	return w.Flush()
}

// workerPort is "preview:8080".
func workerPort(p app.RegisteredPort) string {
	return fmt.Sprintf("%s:%d", app.Printable(p.Worker), p.Target)
}

// numberText says who named the number.
func numberText(p app.RegisteredPort) string {
	if p.Reserved {
		return "reserved"
	}
	return "chosen"
}

// sinceText is the day in this zone.
func sinceText(p app.RegisteredPort) string {
	if p.Since == nil {
		return ""
	}
	return p.Since.Local().Format(time.DateOnly)
}

// alsoText are the projects that have the port, too, each once.
func alsoText(p app.RegisteredPort) string {
	var names []string
	told := map[app.PortHolder]bool{}
	for _, o := range p.Others {
		if o.Worker = ""; !told[o] {
			told[o] = true
			names = append(names, app.Printable(o.Project))
		}
	}
	return strings.Join(names, ", ")
}
