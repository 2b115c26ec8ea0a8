// Package model has the verbs about local models, which are llmdo's alone: models ls, check,
// up, down, url and compile.
package model

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/model/standalone"
)

// verbs is the program that the verbs of this package are part of.
type verbs struct{ *command.Program }

// Command is the group of commands about local models.
func Command(p *command.Program) *cobra.Command {
	a := verbs{p}
	cmd := &cobra.Command{
		Use:   "models",
		Short: "Local models",
		Args:  cobra.ArbitraryArgs,
		RunE:  command.Unknown,
	}
	cmd.AddCommand(a.lsCommand(), a.checkCommand(), a.upCommand(), a.downCommand(), a.urlCommand(), a.compileCommand())
	return cmd
}

func (a verbs) compileCommand() *cobra.Command {
	var alone bool
	var out string
	cmd := &cobra.Command{
		Use:   "compile --standalone",
		Short: "Write the Compose file of a local model without a workshop",
		Long: `compile --standalone prints a Compose file that runs llama.cpp's server behind one port
of 127.0.0.1, for docker-compose 1.29 and Compose v2. The server has no network, a
read-only root, no capability, and limits; a second container carries bytes between the
port and its socket. What differs from machine to machine is a variable of the file: its
first lines name them. The repository has the file as docker/compose.local-llm.yaml.`,
		Example: `  llmdo models compile --standalone
  llmdo models compile --standalone -o compose.local-llm.yaml`,
		RunE: a.Run(func(_ context.Context, cmd *cobra.Command, _ []string) error {
			if !alone {
				return command.UsageError(cmd, "without --standalone there is nothing to write: `workshop compile` writes the project of a workshop")
			}
			return a.compile(out)
		}),
	}
	cmd.Flags().BoolVar(&alone, "standalone", false, "the file that needs no workshop")
	cmd.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write or replace (default: the standard output)")
	_ = cmd.MarkFlagFilename("output", "yaml", "yml")
	return cmd
}

func (a verbs) compile(out string) error {
	if out == "" {
		_, err := fmt.Fprint(a.Out, standalone.Compose())
		return err
	}
	if err := atomicfile.Write(a.Abs(out), []byte(standalone.Compose()), 0o644); err != nil {
		return fmt.Errorf("models compile: %w", err)
	}
	shown := a.Shown(a.Abs(out))
	fmt.Fprintln(a.Out, shown)
	a.Say("next: `docker compose -f %s up -d`", shellquote.Path(shown))
	return nil
}
