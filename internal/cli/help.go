package cli

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/lib/textwrap"
)

// Help is as wide as a terminal of the usual width, or as the terminal is, up to
// what is comfortable to read.
const (
	helpColumns    = 80
	maxHelpColumns = 100
)

func columns(sys *command.System, w io.Writer) int {
	if n := sys.Columns(w); n > 0 {
		return min(n, maxHelpColumns)
	}
	return helpColumns
}

// help prints what a command does, then its usage.
func help(sys *command.System, cmd *cobra.Command) {
	w := cmd.OutOrStdout()
	text := cmp.Or(cmd.Long, cmd.Short)
	if n := sys.Columns(w); n > 0 { // elsewhere as it was written
		text = textwrap.Paragraphs(text, min(n, maxHelpColumns))
	}
	fmt.Fprintf(w, "%s\n\n", strings.TrimRight(text, " \n"))
	_ = usage(sys, cmd, w)
	if number := promiseNumber().FindString(text + cmd.LocalFlags().FlagUsages()); number != "" && cmd.Name() != "explain" {
		fmt.Fprintln(w, sys.Pasteable("\nRun `workshop explain "+number+"` for what "+number+" means."))
	}
}

var promiseNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bB\d+\b`) })

// usage prints how a command is called: its own flags first, then those that
// every command has.
func usage(sys *command.System, cmd *cobra.Command, w io.Writer) error {
	width := columns(sys, w)
	line := strings.TrimSuffix(cmd.CommandPath(), cmd.Name()) + synopsis(cmd)
	fmt.Fprintf(w, "Usage:\n  %s%s\n", sys.Under, strings.TrimPrefix(line, sys.Under))
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", examples(cmd.Example, sys.Columns(w)))
	}
	printCommands(w, cmd, width)
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
		fmt.Fprintf(w, "\nFlags:\n%s", own.FlagUsagesWrapped(width))
	}
	if global.HasAvailableFlags() {
		fmt.Fprintf(w, "\nGlobal flags:\n%s", global.FlagUsagesWrapped(width))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(w, "\n"+textwrap.Lines("Run `"+cmd.CommandPath()+" COMMAND --help` for more about a command.", sys.Columns(w), 0))
	}
	return nil
}

// examples puts comments above their commands where one doesn't fit beside its.
func examples(text string, width int) string {
	lines := strings.Split(text, "\n")
	if width == 0 || !slices.ContainsFunc(lines, func(line string) bool {
		return strings.Contains(line, "  # ") && runewidth.StringWidth(line) > width
	}) {
		return text
	}
	for i, line := range lines {
		if command, comment, ok := strings.Cut(line, "  # "); ok {
			lines[i] = "  # " + comment + "\n" + strings.TrimRight(command, " ")
		}
	}
	return strings.Join(lines, "\n")
}

// printCommands lists the commands below one, by group.
func printCommands(w io.Writer, cmd *cobra.Command, width int) {
	list := func(title, group string) {
		var lines strings.Builder
		for _, c := range cmd.Commands() {
			if c.GroupID == group && c.IsAvailableCommand() {
				short := textwrap.Lines(c.Short, width-16, 0)
				fmt.Fprintf(&lines, "  %-13s %s\n", c.Name(), strings.ReplaceAll(short, "\n", "\n"+strings.Repeat(" ", 16)))
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
