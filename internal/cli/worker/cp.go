package worker

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
)

// Cp is the verb cp.
func Cp(p *command.Program) *cobra.Command {
	a := verbs{p}
	unlimited := false
	cmd := &cobra.Command{
		Use:   "cp SOURCE TARGET",
		Short: "Copy files between a worker and this machine",
		Long: `cp copies a file or directory. One side is WORKER:PATH, the other a path here,
or - for a tar stream on standard input or output; that of an input is unpacked
in an existing directory.

The worker must be running. Its user reads and writes there: cp has that user's
permissions.

What comes out of a worker is not trusted: links and names that lead out of
TARGET, devices and set-uid bits are skipped and reported; more than 10 GiB,
100,000 entries or 128 directories below one another is refused (--unlimited
lifts these), and a stream isn't written to a terminal.`,
		Example: `  workshop cp reviewer:/output/report.md .
  workshop cp ./data builder:/output
  workshop cp reviewer:/output - | tar t
  workshop cp builder:/scratch/log .`,
		Args:              command.Args(2, 2),
		ValidArgsFunction: a.completeCopy,
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.cp(ctx, cmd, args[0], args[1], unlimited)
		}),
	}
	cmd.Flags().BoolVar(&unlimited, "unlimited", false, "copy out of a worker however much it is")
	return cmd
}

func (a verbs) cp(ctx context.Context, cmd *cobra.Command, from, to string, unlimited bool) error {
	fromWorker, fromPath, out := splitWorker(from)
	toWorker, toPath, in := splitWorker(to)
	if out == in {
		return command.UsageError(cmd, "cp: exactly one side is WORKER:PATH")
	}
	if out && !path.IsAbs(fromPath) || in && !path.IsAbs(toPath) {
		return command.UsageError(cmd, "cp: the path in a worker is absolute, as in %s:/scratch", fromWorker+toWorker)
	}
	if out && to == "-" && terminal.Is(a.Out) {
		return command.UsageError(cmd, "cp: what a worker made isn't written to a terminal: send it on, as in `| tar t`")
	}
	if out {
		return a.CopyOut(ctx, fromWorker, fromPath, to, unlimited, a.Out)
	}
	return a.CopyIn(ctx, from, toWorker, toPath, a.In)
}

// completeCopy completes the side of cp that is in a worker up to its colon, and the
// other one to files here: those that a shell adds by itself where nothing is offered,
// and what is in the current directory where a worker begins so too.
func (a verbs) completeCopy(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	files := len(args) == 0
	if len(args) == 1 {
		if _, _, ok := splitWorker(args[0]); ok {
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	var names []string
	for _, name := range a.WorkerNames(cmd) {
		names = append(names, name+":")
	}
	offered := command.Beginning(prefix, args, names)
	switch {
	case files && len(offered) == 0:
		return nil, cobra.ShellCompDirectiveDefault
	case files:
		offered = append(offered, command.Beginning(prefix, nil, filesHere(a.Dir, strings.HasPrefix(prefix, ".")))...)
	}
	return offered, cobra.ShellCompDirectiveNoSpace
}

// filesHere are the names in a directory, those of directories with a slash.
func filesHere(dir string, hidden bool) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, ".") && !hidden:
		case e.IsDir():
			names = append(names, name+"/")
		default:
			names = append(names, name)
		}
	}
	return names
}

// splitWorker distinguishes WORKER:PATH from a path; C:\x and ./a:b are paths.
func splitWorker(arg string) (worker, file string, ok bool) {
	worker, file, found := strings.Cut(arg, ":")
	if !found || !app.ValidName(worker) || len(worker) == 1 && filepath.VolumeName(arg) != "" {
		return "", arg, false
	}
	return worker, file, true
}
