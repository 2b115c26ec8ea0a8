package cli

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/shellword"
)

// compileOptions are the flags of compile.
type compileOptions struct {
	out         string
	check, load bool
	yes         bool
}

func (a *program) compileCommand() *cobra.Command {
	var o compileOptions
	cmd := &cobra.Command{
		Use:   "compile",
		Short: "Write the Compose project that a workshop stands for",
		Long: `compile writes .workshop/NAME/ beside the workshop file: compose.yaml, the
guard's policy, the rooms' rules and the seccomp profile. The files depend on
the repository alone and may be committed; then --check in CI shows that they
are what workshop.yaml says.

--load also prepares what plain Compose needs of this machine (image, tool
volume, the files in run/) and prints the command that starts the project. Where
workdir is in a mount, docker compose exec starts in /: name the directory (-w).`,
		Example: `  workshop compile
  workshop compile --check
  workshop compile --load`,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if o.check && o.load {
				return usageError(cmd, "--check and --load exclude each other")
			}
			return a.compileVerb(ctx, cmd, o)
		}),
	}
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "directory to write (default: .workshop/NAME beside the file)")
	cmd.Flags().BoolVar(&o.check, "check", false, "write nothing; fail if the files are not up to date")
	cmd.Flags().BoolVar(&o.load, "load", false, "prepare image and volume for plain Compose")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "with --load: build images without asking")
	return cmd
}

func (a *program) compileVerb(ctx context.Context, cmd *cobra.Command, o compileOptions) error {
	c, err := a.Compile(ctx)
	if err != nil {
		return err
	}
	files, err := compose.Render(c.Compiled)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	g := newGenerated(c.Root(), filepath.Join(".workshop", c.Workshop.Name.V), files)
	if o.out != "" {
		g = newGenerated(a.Abs(o.out), ".", files)
	}
	if o.check {
		return a.checkGenerated(cmd, g)
	}
	if err := a.writeGenerated(g); err != nil {
		return err
	}
	if o.load {
		return a.loadForCompose(ctx, cmd, c, g, o)
	}
	return nil
}

// writeGenerated writes and prints what changed.
func (a *program) writeGenerated(g generated) error {
	done, err := g.write()
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	for _, name := range done.wrote {
		fmt.Fprintln(a.Out, a.Shown(g.path(name)))
	}
	for _, name := range done.removed {
		a.say("removed %s: no longer generated", a.Shown(g.path(name)))
	}
	for _, name := range done.kept {
		a.warn("%s was changed by hand and is kept", a.Shown(g.path(name)))
	}
	for _, name := range g.strange() {
		a.warn("%s is not generated, and Compose reads it by itself; remove it: `rm %s`", a.Shown(g.path(name)), shellword.Quote(a.Shown(g.path(name))))
	}
	if len(done.wrote)+len(done.removed) == 0 {
		a.say("%s is up to date", a.Shown(g.path("")))
	}
	return nil
}

// maxDiffLines of each file are shown; CI logs need no more to see the cause.
const maxDiffLines = 40

// checkGenerated fails if a file is not as it would be written.
func (a *program) checkGenerated(cmd *cobra.Command, g generated) error {
	differences, err := g.check()
	if err != nil {
		return fmt.Errorf("compile --check: %w", err)
	}
	if len(differences) == 0 {
		return nil
	}
	for _, d := range differences {
		fmt.Fprintf(a.Out, "%s %s\n", a.Shown(g.path(d.path)), d.what)
		if d.path == manifestName {
			continue
		}
		lines := bytes.Split(bytes.TrimSuffix(d.diff, []byte("\n")), []byte("\n"))
		for i, line := range lines {
			if i == maxDiffLines {
				fmt.Fprintf(a.Out, "… %d lines more\n", len(lines)-i)
				break
			}
			fmt.Fprintln(a.Out, app.Printable(string(line))) // it may drive a terminal, or a log that obeys commands
		}
	}
	return app.Fail(app.CodeFailed, "the generated files are not up to date").
		Hint("run `%s` and commit the result", commandLine(cmd, "compile"))
}
