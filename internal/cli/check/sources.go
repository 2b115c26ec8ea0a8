package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Add is the verb add.
func Add(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o app.AddOptions
	cmd := &cobra.Command{
		Use:   "add SOURCE[@VERSION]",
		Short: "Import workers of another repository, or extend its workshop",
		Long: `add writes a source into the workshop file, and locks it. SOURCE is the address of a
repository and a directory in it, HOST/PATH//DIRECTORY, by https unless it begins with
ssh://, or oci://REGISTRY/REPOSITORY. VERSION is a range, a tag or a commit; without it
the newest release is taken, and its range written.

Its commit, signer, files and needs are shown, and you are asked before anything is
written. Without a terminal --yes agrees to sources that the settings allow
(sources.allow), and the same is shown.

An import gets what the file grants it below ` + "`grant:`" + `, and nothing without that.
Where it needs more, the lines are printed, and the lock is written once they are there.
With --extends what the base grants is shown. Where there is no workshop file, one is
written, by the name of the directory.`,
		Example: `  workshop add git.example.org/acme/sast@^2 --as sast
  workshop add --extends git.example.org/acme/workshops//go-review
  workshop add oci://registry.example.org/acme/review@v1.4.2`,
		Args: command.Args(1, 1),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if o.Source = args[0]; o.Extends && o.As != "" {
				return command.UsageError(cmd, "--as names an import, and --extends takes no name")
			}
			o.Ask = a.Asker()
			return a.add(ctx, o)
		}),
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().StringVar(&o.As, "as", "", "name of the import; default: the last part of its address")
	command.FreeText(cmd, "as")
	cmd.Flags().BoolVar(&o.Extends, "extends", false, "make it the base of this workshop")
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "agree to sources that the settings allow (sources.allow)")
	return cmd
}

func (a verbs) add(ctx context.Context, o app.AddOptions) error {
	r, err := a.AddSource(ctx, o)
	if r.Written && r.New {
		a.Say("wrote %s", r.File)
	}
	if r.Written {
		fmt.Fprintf(a.Out, "%s: %s\n", r.File, app.Printable(r.Line))
	}
	if err != nil {
		return err
	}
	if !r.Lock.New {
		a.printDifferences(r.Lock)
	}
	a.Say("wrote %s", r.Lock.File)
	return nil
}

// Update is the verb update.
func Update(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o app.LockOptions
	cmd := &cobra.Command{
		Use:   "update [SOURCE…]",
		Short: "Take newer releases of sources into the lock",
		Long: `update looks for the newest releases of sources that the workshop file's versions allow,
and writes them into workshop.lock: all, or those that are named as the lock names them.
What changes is shown, with every grant that is new (+) or gone (-), and releases that
the versions don't allow. Images stay.

A release that needs more than the file grants, or that the file doesn't fit, is an
error with the lines to write, and one with another signer than the lock has is refused.
Then nothing is written; --dry-run shows the releases of the other sources.`,
		Example: `  workshop update --dry-run
  workshop update git.example.org/acme/sast`,
		Args: command.Args(0, -1),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			o.Sources, o.AllSources, o.Ask = args, len(args) == 0, a.Asker()
			r, err := a.Lock(ctx, o)
			if err != nil {
				return err
			}
			a.printDifferences(r)
			for _, n := range r.Newer {
				a.Say("%s has the release %s, which the version %s doesn't allow: write another version to take it", app.Printable(n.ID), app.Printable(n.Tag), app.Printable(n.Allowed))
			}
			switch {
			case r.Refused != nil:
				return r.Refused
			case !r.Changed:
				a.Say("%s has the newest releases that the workshop allows", r.File)
			case !o.DryRun:
				a.Say("wrote %s", r.File)
			}
			return nil
		}),
		ValidArgsFunction: a.completeSources,
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "show what would change, and write nothing")
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "agree to sources that the settings allow (sources.allow)")
	return cmd
}

func (a verbs) completeSources(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return command.Beginning(prefix, args, a.SourceIDs(cmd.Context(), false)), cobra.ShellCompDirectiveNoFileComp
}

// Vendor is the verb vendor.
func Vendor(p *command.Program) *cobra.Command {
	a := verbs{p}
	check := false
	cmd := &cobra.Command{
		Use:   "vendor",
		Short: "Keep the files of sources in the project",
		Long: `vendor writes the files of all sources into .workshop/_vendor, as workshop.lock has
them. Commit the directory: then no repository is asked for anything, and nobody is
asked whether it may be. What is there counts only with the content that the lock has.

--check compares, writes nothing, and exits with 3 where something differs.`,
		Example: `  workshop vendor
  workshop vendor --check            # in continuous integration`,
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			r, err := a.Vendor(ctx, check)
			if err != nil {
				return err
			}
			for _, line := range r.Wrong {
				fmt.Fprintln(a.Out, app.Printable(line))
			}
			switch {
			case len(r.Wrong) > 0:
				return app.Fail(app.CodeInvalid, "%s isn't what the lock has: %s", r.Dir, app.Count(len(r.Wrong), "difference")).Hint("run `workshop vendor`")
			case check:
				a.Say("%s has all of %s", r.Dir, app.Count(len(r.Sources), "source"))
			default:
				for _, id := range r.Sources {
					fmt.Fprintln(a.Out, id)
				}
				for _, name := range r.Removed {
					a.Say("removed %s", name)
				}
				a.Say("wrote %s into %s", app.Count(len(r.Sources), "source"), r.Dir)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; fail if something differs from the lock")
	return cmd
}

// Why is the verb why.
func Why(p *command.Program) *cobra.Command {
	a := verbs{p}
	return &cobra.Command{
		Use:   "why [SOURCE]",
		Short: "Show how the workshop comes to have a source",
		Long: `why shows the release of a source that the lock has, the workers that come from it, and
each way to it: the workshop file, and the sources between. SOURCE is its name in the
lock, or that of an import. Without one all sources are listed, with who names them.`,
		Example: `  workshop why
  workshop why sast
  workshop why git.example.org/acme/common`,
		Args: command.Args(0, 1),
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.whyAll(ctx)
			}
			w, err := a.WhySource(ctx, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "%s %s (%.12s), signed by %s\n", app.Printable(w.ID), app.Printable(w.Ref), w.Commit, app.Printable(w.Signer))
			for _, c := range w.Chains {
				fmt.Fprintln(a.Out, app.Printable(strings.Join(c, " -> ")))
			}
			if len(w.Workers) > 0 {
				fmt.Fprintf(a.Out, "workers: %s\n", strings.Join(w.Workers, ", "))
			}
			return nil
		}),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return command.Beginning(prefix, nil, a.SourceIDs(cmd.Context(), true)), cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// whyAll lists the sources.
func (a verbs) whyAll(ctx context.Context) error {
	all, err := a.WhySources(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		a.Say("the workshop has no sources: `workshop add SOURCE` adds one")
	}
	for _, w := range all {
		as := ""
		if len(w.As) > 0 {
			as = " as " + strings.Join(w.As, ", ")
		}
		fmt.Fprintf(a.Out, "%s%s %s, named by %s\n", app.Printable(w.ID), as, app.Printable(w.Ref), app.Printable(strings.Join(w.By, ", ")))
	}
	return nil
}
