package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
)

func (a *program) capabilitiesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "capabilities",
		Short: "Show which promises the engine keeps on this machine",
		Long: `capabilities lists the promises of the boundary, says of each whether the engine
keeps it on this machine, and by what or why not; then what else was found. A
workshop is refused, before anything starts, where one isn't kept. Without
--engine it is about the engine that ` + "`up`" + ` would choose here.`,
		Example: `  workshop capabilities
  workshop capabilities --engine namespace
  workshop capabilities --format json`,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.formatOf(cmd)
			if err != nil {
				return err
			}
			var t app.ProjectRef
			if _, err := a.FindFile(); err == nil {
				if t, err = a.Find(ctx); err != nil { // for the file's isolation
					return err
				}
			}
			a.Settings.ForceProcess = true // nothing is started
			e, err := a.Connect(ctx, t, nil)
			if err != nil {
				return err
			}
			defer e.Close()
			info, err := e.Info(ctx)
			if err != nil {
				return app.EngineError(err)
			}
			return a.printCapabilities(format, e.Chosen.Why, info)
		}),
	}
}

func (a *program) printCapabilities(format, why string, i engine.Info) error {
	list, promises := append(app.Capabilities(i), a.GitCapability()), app.Promises(i)
	if format == "json" {
		return a.writeJSON(struct {
			Engine       string           `json:"engine"`
			Why          string           `json:"why,omitempty"` // it was chosen
			Endpoint     string           `json:"endpoint"`
			Version      string           `json:"version"`
			APIVersion   string           `json:"api_version"`
			Platform     string           `json:"platform"`
			Runtimes     []string         `json:"runtimes"`
			Promises     []app.Promise    `json:"promises"`
			Capabilities []app.Capability `json:"capabilities"`
		}{i.Kind, why, i.Endpoint, i.Version, i.APIVersion, i.OS + "/" + i.Arch, i.Runtimes, promises, list})
	}
	fmt.Fprintln(a.Out, engineLine(i))
	if why != "" {
		fmt.Fprintf(a.Out, "chosen because %s\n", why)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\nPROMISE\tHELD\tWHAT\tBY")
	for _, p := range promises {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Promise, heldWord(p.Held), p.Title, p.How)
	}
	fmt.Fprintln(w, "\nFOUND\tHELD\tFOR\tMEANING")
	for _, c := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, heldWord(c.Held), c.Promise, c.Meaning)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var said []string
	for _, c := range list {
		if !c.Held && c.Do != "" && !slices.Contains(said, c.Do) {
			said = append(said, c.Do)
			fmt.Fprintf(a.Out, "hint: %s: %s\n", c.Name, c.Do)
		}
	}
	return nil
}

// engineLine is what an engine is, in one line.
func engineLine(i engine.Info) string {
	line := i.Kind + " " + i.Version
	if i.APIVersion != "" {
		line += " (API " + i.APIVersion + ")"
	}
	if i.Endpoint != "" {
		line += " at " + i.Endpoint
	}
	line += ", " + i.OS + "/" + i.Arch
	if len(i.Runtimes) > 0 {
		line += ", runtimes: " + strings.Join(i.Runtimes, ", ")
	}
	return line
}

func heldWord(held bool) string {
	if held {
		return "yes"
	}
	return "no"
}
