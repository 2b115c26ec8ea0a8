package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Capabilities is the verb capabilities.
func Capabilities(p *command.Program) *cobra.Command {
	a := verbs{p}
	return &cobra.Command{
		Use:   "capabilities",
		Short: "Show which promises the engine keeps on this machine",
		Long: `capabilities lists the promises of the boundary, says of each whether the engine
keeps it on this machine, and by what or why not; then what else was found. "not
checked" is what ` + "`up`" + ` can't compare here with what it asked for. A workshop is
refused, before anything starts, where a promise isn't kept. Without
--engine it is about the engine that ` + "`up`" + ` would choose here.`,
		Example: `  workshop capabilities
  workshop capabilities --engine namespace
  workshop capabilities --format json`,
		Annotations: command.Formats("text", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			r, err := a.EngineReport(ctx)
			if err != nil {
				return err
			}
			if format == "json" {
				return a.WriteJSON(r)
			}
			return a.printCapabilities(r)
		}),
	}
}

func (a verbs) printCapabilities(r app.EngineReport) error {
	fmt.Fprintln(a.Out, app.Printable(engineLine(r)))
	if r.Why != "" {
		fmt.Fprintf(a.Out, "chosen because %s\n", app.Printable(r.Why))
	}
	w := a.Table()
	fmt.Fprintln(w, "\nPROMISE\tHELD\tWHAT\tBY")
	for _, p := range r.Promises {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Promise, heldWord(p.Held), p.Title, p.How)
	}
	fmt.Fprintln(w, "\nFOUND\tHELD\tFOR\tMEANING")
	for _, c := range r.Capabilities {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, foundWord(c), c.Promise, c.Meaning)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var said []string
	for _, c := range r.Capabilities {
		if !c.Held && c.Do != "" && !slices.Contains(said, c.Do) {
			said = append(said, c.Do)
			fmt.Fprintf(a.Out, "hint: %s: %s\n", c.Name, app.Printable(c.Do))
		}
	}
	return nil
}

// engineLine is what an engine is, in one line.
func engineLine(r app.EngineReport) string {
	line := r.Engine + " " + r.Version
	if r.APIVersion != "" {
		line += " (API " + r.APIVersion + ")"
	}
	if r.Endpoint != "" {
		line += " at " + r.Endpoint
	}
	line += ", " + r.Platform
	if len(r.Runtimes) > 0 {
		line += ", runtimes: " + strings.Join(r.Runtimes, ", ")
	}
	return line
}

func foundWord(c app.Capability) string {
	if c.NotChecked {
		return "not checked"
	}
	return heldWord(c.Held)
}

func heldWord(held bool) string {
	if held {
		return "yes"
	}
	return "no"
}
