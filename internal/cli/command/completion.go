package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
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

// freeText are names of flags whose values are not known in advance.
var freeText = []string{"project-name", "env", "workdir", "user", "name", "allow", "deny", "image", "secret", "publish"}

// usual are values that are often meant, where others are possible too.
var usual = map[string][]string{
	"base":         {"HEAD", "HEAD~1", "main", "origin/main"},
	"cpus":         {"0.5", "1", "2", "4"},
	"for":          {"10m", "30m", "1h", "8h"},
	"memory":       {"256M", "512M", "1G", "4G"},
	"pids":         {"64", "256", "1024"},
	"since":        {"10m", "1h", "24h"},
	"tail":         {"10", "100", "1000"},
	"timeout":      {"1m", "10m", "1h"},
	"wait-timeout": {"1m", "5m", "15m"},
}

// CompleteFlags completes the values of a command's flags by their names. A flag
// that the command completes itself stays as it is.
func (a *Program) CompleteFlags(c *cobra.Command) {
	complete := func(flag string, f cobra.CompletionFunc) {
		// The only errors are a flag that isn't there, and one that is completed.
		_ = c.RegisterFlagCompletionFunc(flag, f)
	}
	fixed := map[string][]string{"format": formats(c), "engine": engines(), "isolation": engines()}
	for _, values := range []map[string][]string{fixed, usual} {
		for flag, v := range values {
			complete(flag, cobra.FixedCompletions(v, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	complete("worker", a.CompleteWorkers(0))
	for _, flag := range freeText {
		if _, own := c.GetFlagCompletionFunc(flag); !own && c.Flags().Lookup(flag) != nil {
			FreeText(c, flag)
		}
	}
	// The only error is a flag that isn't there.
	_ = c.MarkFlagFilename("file", "yaml", "yml")
	_ = c.MarkFlagFilename("env-file")
	_ = c.MarkFlagFilename("from", "json", "yaml", "yml")
	_ = c.MarkFlagDirname("output")
}

// engines are the values of --engine.
func engines() []string {
	return append([]string{string(workshop.IsolationAuto)}, promise.Engines()...)
}

// freeTextKey is the annotation of a flag that completes to nothing.
const freeTextKey = "free-text"

// FreeText marks a flag whose values are not known in advance: no file is offered.
func FreeText(c *cobra.Command, flag string) {
	// The only errors are a flag that isn't there, and one that is completed.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	_ = c.Flags().SetAnnotation(flag, freeTextKey, []string{"yes"})
}

// IsFreeText reports whether [FreeText] was said of a flag.
func IsFreeText(f *pflag.Flag) bool { return len(f.Annotations[freeTextKey]) > 0 }

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
