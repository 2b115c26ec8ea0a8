package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmdo/workshop/internal/cli/command"
)

// helpColumns is how wide help is written: for a terminal of the usual width.
const helpColumns = 80

// usage prints how a command is called: first what is its own, the flags that
// every command has behind it.
func usage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprintln(w, "Usage:")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND [FLAGS]\n", cmd.CommandPath())
	} else {
		line := cmd.UseLine()
		if !strings.Contains(line, "[FLAGS]") {
			line += " [FLAGS]"
		}
		fmt.Fprintf(w, "  %s\n", line)
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	printCommands(w, cmd)
	own, global := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags, global.SortFlags = false, false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if command.IsGlobalFlag(f.Name) || f.Name == "help" || f.Name == "version" {
			global.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	if own.HasAvailableFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s", own.FlagUsagesWrapped(helpColumns))
	}
	if global.HasAvailableFlags() {
		fmt.Fprintf(w, "\nGlobal flags:\n%s", global.FlagUsagesWrapped(helpColumns))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nRun `%s COMMAND --help` for more about a command.\n", cmd.CommandPath())
	}
	return nil
}

// printCommands lists the commands below one, by group.
func printCommands(w io.Writer, cmd *cobra.Command) {
	list := func(title, group string) {
		var lines strings.Builder
		for _, c := range cmd.Commands() {
			if c.GroupID == group && c.IsAvailableCommand() {
				fmt.Fprintf(&lines, "  %-13s %s\n", c.Name(), c.Short)
			}
		}
		if lines.Len() > 0 {
			fmt.Fprintf(w, "\n%s\n%s", title, lines.String())
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
	list("Commands:", "")
}
