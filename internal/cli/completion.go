package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// completeWorkers completes the names of workers; max is how many a command
// takes, 0 any number. It is silent about a file that can't be read.
func (a *app) completeWorkers(max int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var err error
		if a.set, err = a.readSettings(cmd); err != nil || max > 0 && len(args) >= max {
			return nil, cobra.ShellCompDirectiveDefault
		}
		file, err := a.findFile()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := a.readSource(file)
		if err != nil || s.w == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, w := range s.w.Workers {
			if strings.HasPrefix(w.Name, prefix) && !slices.Contains(args, w.Name) {
				names = append(names, w.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
