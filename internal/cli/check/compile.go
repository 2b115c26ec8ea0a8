package check

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// compileOptions are the flags of compile.
type compileOptions struct {
	out         string
	check, load bool
	yes         bool
}

// Compile is the verb compile.
func Compile(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o compileOptions
	cmd := &cobra.Command{
		Use:   "compile",
		Short: "Write a workshop's Compose project",
		Long: `compile writes .workshop/NAME/ next to the workshop file: compose.yaml, the
guard's policy, the rooms' rules and the seccomp profile. The files depend on
the repository alone and may be committed; then --check in CI shows that they
are what workshop.yaml says. Lines of it that a worker may have written are
shown, and refused as by ` + "`up`" + `, which can accept them, or need a yes (B8).

--load also prepares what plain Compose needs of this machine (image, tool
volume, the files in run/) and prints the command that starts the project. Where
workdir is in a mount, docker compose exec starts in /: name the directory (-w).`,
		Example: `  workshop compile
  workshop compile --check
  workshop compile --load`,
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if o.check && o.load {
				return command.UsageError(cmd, "--check and --load exclude each other")
			}
			return a.compileVerb(ctx, o)
		}),
	}
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "directory to write (default: .workshop/NAME next to the file)")
	cmd.Flags().BoolVar(&o.check, "check", false, "write nothing; fail if the files are not up to date")
	cmd.Flags().BoolVar(&o.load, "load", false, "prepare image and volume for plain Compose")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "with --load: build images without asking")
	command.FrozenFlag(cmd)
	return cmd
}

func (a verbs) compileVerb(ctx context.Context, o compileOptions) error {
	a.Warnings = app.WarnAll
	c, err := a.Compile(ctx)
	if err != nil {
		return err
	}
	if err := a.MayRun(ctx, c.Source); err != nil {
		return err
	}
	g, err := a.Generate(c, o.out)
	if err != nil {
		return err
	}
	if o.check {
		redefined, err := a.ShowRedefined(ctx, c)
		if err != nil {
			return err
		}
		return a.checkGenerated(g, redefined)
	}
	if err := a.ReviewDefinition(ctx, c, a.Asker()); err != nil {
		return err
	}
	if err := a.writeGenerated(g); err != nil || !o.load {
		return err
	}
	command, err := a.LoadForCompose(ctx, c, g, o.yes)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Out, command)
	return nil
}

// writeGenerated writes and prints what changed.
func (a verbs) writeGenerated(g app.Generated) error {
	done, err := g.Write()
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	for _, name := range done.Wrote {
		fmt.Fprintln(a.Out, a.Shown(g.Path(name)))
	}
	for _, name := range done.Removed {
		a.Say("removed %s: no longer generated", a.Shown(g.Path(name)))
	}
	for _, name := range done.Kept {
		a.Warn("%s was changed by hand and is kept", a.Shown(g.Path(name)))
	}
	for _, name := range done.Strange {
		shown := a.Shown(g.Path(name))
		a.Warn("%s is not generated, but Compose reads it; remove it: `rm %s`", shown, shellquote.Path(shown))
	}
	if len(done.Wrote)+len(done.Removed) == 0 {
		a.Say("%s is up to date", a.Shown(g.Path("")))
	}
	return nil
}

// maxDiffLines of each file are shown; CI logs need no more to see the cause.
const maxDiffLines = 40

// checkGenerated fails if a file is not as it would be written. redefined: a worker may
// have written what it would be.
func (a verbs) checkGenerated(g app.Generated, redefined bool) error {
	differences, err := g.Check()
	if err != nil {
		return fmt.Errorf("compile --check: %w", err)
	}
	if len(differences) == 0 {
		return nil
	}
	for _, d := range differences {
		fmt.Fprintf(a.Out, "%s %s\n", a.Shown(g.Path(d.Path)), d.What)
		if d.Path == app.ManifestName {
			continue
		}
		lines := bytes.Split(bytes.TrimSuffix(d.Diff, []byte("\n")), []byte("\n"))
		for i, line := range lines {
			if i == maxDiffLines {
				fmt.Fprintf(a.Out, "… %d lines more\n", len(lines)-i)
				break
			}
			fmt.Fprintln(a.Out, app.Printable(string(line))) // it may drive a terminal, or a log that obeys commands
		}
	}
	failure := app.Fail(app.CodeFailed, "the generated files are not up to date")
	if redefined { // the hint of that is the one to follow
		return failure
	}
	return failure.Hint("run `workshop compile` and commit the result")
}
