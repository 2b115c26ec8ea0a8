package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
)

// completeWorkers completes the names of workers; max is how many a command
// takes, 0 any number. It is silent about a file that can't be read.
func (a *program) completeWorkers(max int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if max > 0 && len(args) >= max {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return beginning(prefix, args, a.workerNames(cmd)), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeServices completes workers, rooms and the guard.
func (a *program) completeServices(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	names := a.workerNames(cmd)
	if s := a.completionSource(cmd); s != nil {
		if c, err := compose.Compile(s.Workshop); err == nil {
			names = slices.Sorted(maps.Keys(c.Roles))
		}
	}
	return beginning(prefix, args, names), cobra.ShellCompDirectiveNoFileComp
}

// completeCopy completes the side of cp that is in a worker up to its colon;
// the other one is a file here.
func (a *program) completeCopy(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) == 1 {
		if _, _, ok := splitWorker(args[0]); ok {
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	var names []string
	for _, name := range a.workerNames(cmd) {
		names = append(names, name+":")
	}
	return beginning(prefix, args, names), cobra.ShellCompDirectiveNoSpace
}

// completeFlags completes the values of the flags that every command has.
func completeFlags(c *cobra.Command) {
	for flag, values := range map[string][]string{"format": formats[verbName(c)], "engine": {"docker"}} {
		// The only error is a flag that isn't there.
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

func (a *program) workerNames(cmd *cobra.Command) []string {
	s := a.completionSource(cmd)
	if s == nil {
		return nil
	}
	return s.WorkerNames()
}

// completionSource is the workshop; nil, without a word, where there is none
// that can be read.
func (a *program) completionSource(cmd *cobra.Command) *app.Source {
	var err error
	if err = a.readSettings(cmd); err != nil {
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

// beginning picks the names that begin so and aren't among args.
func beginning(prefix string, args, names []string) []string {
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && !slices.Contains(args, name) {
			out = append(out, name)
		}
	}
	return out
}
