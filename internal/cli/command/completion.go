package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
)

// CompleteWorkers completes the names of workers; max is how many a command
// takes, 0 any number. It is silent about a file that can't be read.
func (a *Program) CompleteWorkers(max int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if max > 0 && len(args) >= max {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return Beginning(prefix, args, a.WorkerNames(cmd)), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteGlobalFlags completes the values of the flags that every command has.
func CompleteGlobalFlags(c *cobra.Command) {
	for flag, values := range map[string][]string{"format": formats(c), "engine": {"docker"}} {
		// The only error is a flag that isn't there.
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// WorkerNames are those of the workshop; none, without a word, where it can't be
// read.
func (a *Program) WorkerNames(cmd *cobra.Command) []string {
	s := a.CompletionSource(cmd)
	if s == nil {
		return nil
	}
	return s.WorkerNames()
}

// CompletionSource is the workshop; nil, without a word, where there is none
// that can be read.
func (a *Program) CompletionSource(cmd *cobra.Command) *app.Source {
	if err := a.readSettings(cmd); err != nil {
		return nil
	}
	file, err := a.FindFile()
	if err != nil {
		return nil
	}
	s, err := a.Read(cmd.Context(), file)
	if err != nil || s.Workshop == nil {
		return nil
	}
	return s
}

// Beginning picks the names that begin so and aren't among args.
func Beginning(prefix string, args, names []string) []string {
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && !slices.Contains(args, name) {
			out = append(out, name)
		}
	}
	return out
}
