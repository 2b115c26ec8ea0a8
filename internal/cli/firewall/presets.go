package firewall

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Presets is the verb presets.
func Presets(p *command.Program) *cobra.Command {
	a := verbs{p}
	return &cobra.Command{
		Use:   "presets [NAME]",
		Short: "List the network presets, or the names that one opens",
		Example: `  workshop presets
  workshop presets npm`,
		Args: command.Args(0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return presets.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		Annotations: command.Formats("text", "json"),
		RunE: a.Run(func(_ context.Context, cmd *cobra.Command, args []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listPresets(format)
			}
			return a.showPreset(format, args[0])
		}),
	}
}

func (a verbs) listPresets(format string) error {
	var all []presets.Preset
	for _, name := range presets.Names() {
		if p, ok := presets.Get(name); ok {
			all = append(all, p)
		}
	}
	if format == "json" {
		return a.WriteJSON(all)
	}
	w := a.Table()
	fmt.Fprintln(w, "NAME\tVERSION\tDESCRIPTION")
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%v\t%s\n", p.Name, p.Version, p.Description)
	}
	return w.Flush()
}

func (a verbs) showPreset(format, name string) error {
	p, ok := presets.Get(name)
	if !ok {
		return app.Fail(app.CodeUsage, "no preset %q", name).Hint("%s", app.Suggestion(name, presets.Names()))
	}
	if format == "json" {
		return a.WriteJSON(p)
	}
	a.WriteLine(fmt.Sprintf("%s, version %d: %s\n", p.Name, p.Version, p.Description))
	w := a.Table()
	fmt.Fprintln(w, "HOST\tPORTS\tPURPOSE")
	for _, r := range p.Rules {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Host, firewall.FormatPorts(r.Ports), r.Purpose)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	if len(p.Environment) > 0 {
		a.WriteLine(fmt.Sprintf("endpoint: a line with `at: %s` sets %s in the worker", p.Name, strings.Join(slices.Sorted(maps.Keys(p.Environment)), ", ")))
	}
	if p.Note != "" {
		a.WriteLine("note: " + p.Note)
	}
	_, err := fmt.Fprintf(a.Out, "source: %s\nto use it, add to network.allow in workshop.yaml:\n  - preset: %s\n", p.Source, p.Name)
	return err
}
