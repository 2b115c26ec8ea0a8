// Package credential has the verbs about the user's credentials: credential add, list,
// test, remove and revoke.
package credential

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// verbs is the program that the verbs of this package are part of.
type verbs struct{ *command.Program }

// Command is the group of commands about the user's credentials.
func Command(p *command.Program) *cobra.Command {
	a := verbs{p}
	cmd := &cobra.Command{
		Use:   "credential",
		Short: "Your credentials, which workers' requests get and workers never see",
		Long: `credential shows and edits ~/.config/workshop/credentials.yaml: where the value of
each of your credentials is kept, the hosts that it may go to, and the header that
carries it. No workshop can reach or change that file, and no value is in it.

A line of allow in a workshop.yaml names a credential for some requests to one host;
it is added to them on their way out of the room.`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Unknown,
	}
	cmd.AddCommand(a.addCommand(), a.listCommand(), a.testCommand(), a.removeCommand(), a.revokeCommand())
	return cmd
}

func (a verbs) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List your credentials, without their values",
		Long: `list shows where the value of each credential is kept, the hosts that it may go to, and
how it is sent. It reads no value and runs no command.`,
		Example: `  workshop credential list
  workshop credential list --format json`,
		Annotations: command.Formats("table", "json"),
		RunE: a.Run(func(_ context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			all, file, err := a.Credentials()
			switch {
			case err != nil:
				return err
			case format == "json":
				if all == nil {
					all = []app.CredentialInfo{}
				}
				return a.WriteJSON(all)
			case len(all) == 0:
				a.Say("%s has no credentials: `workshop credential add github` adds one", app.Printable(file))
				return nil
			}
			w := a.Table()
			fmt.Fprintln(w, "NAME\tSOURCE\tHOSTS\tAS\tTTL")
			for _, c := range all {
				fmt.Fprintln(w, strings.Join([]string{c.Name, app.Printable(c.Source), strings.Join(c.Hosts, ", "), app.Printable(c.As), c.TTL}, "\t"))
			}
			return w.Flush()
		}),
	}
}

func (a verbs) testCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test NAME",
		Short: "Read the value of a credential, without showing or sending it",
		Long: `test reads the source of a credential as the workshop does: the variable, file or entry
of the keyring, or what the command prints. It says that there is a value, which header
carries it to which host, and asks no host whether it is valid there. Without a value it
says what to do, and exits with 1.`,
		Example:           `  workshop credential test github`,
		Args:              command.Args(1, 1),
		ValidArgsFunction: a.completeNames,
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			t, err := a.TestCredential(ctx, args[0])
			if err != nil {
				return err
			}
			has := "has a value, read in"
			if t.IsKey {
				has = "has the key, found in"
			}
			fmt.Fprintf(a.Out, "%s: %s %s %v\n", t.Name, app.Printable(t.Source), has, t.Took.Round(time.Millisecond))
			w := a.Table()
			for i, host := range t.Hosts {
				fmt.Fprintf(w, "  %s\t%s\n", host, app.Printable(t.Headers[i]))
			}
			return w.Flush()
		}),
	}
}

func (a verbs) removeCommand() *cobra.Command {
	keyring := false
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a credential from your file",
		Long: `remove deletes the lines of a credential in credentials.yaml; every other byte of the
file stays. What is stored elsewhere stays too: a file, a variable, and an entry of the
keyring unless --keyring is given.`,
		Example: `  workshop credential remove npm
  workshop credential remove --keyring npm`,
		Args:              command.Args(1, 1),
		ValidArgsFunction: a.completeNames,
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			r, err := a.RemoveCredential(ctx, args[0], keyring)
			if err != nil {
				return err
			}
			a.Say("removed %s from %s", r.Name, app.Printable(r.File))
			switch {
			case r.Kept:
				a.Say("the keyring keeps its entry %s; --keyring removes that, too", app.Printable(r.Entry))
			case r.Entry != "":
				a.Say("removed the entry %s from the keyring", app.Printable(r.Entry))
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&keyring, "keyring", false, "remove its value from the keyring, too")
	return cmd
}

func (a verbs) completeNames(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return command.Beginning(prefix, nil, a.CredentialNames()), cobra.ShellCompDirectiveNoFileComp
}
