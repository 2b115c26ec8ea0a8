package credential

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/secretsource"
)

func (a verbs) addCommand() *cobra.Command {
	var n app.NewCredential
	cmd := &cobra.Command{
		Use:   "add NAME [-- COMMAND [ARG…]]",
		Short: "Add a credential to your file",
		Long: `add writes an entry into credentials.yaml, and prints the lines of a workshop.yaml that
use it. Every other byte of the file stays. A known name, or --template, fills in the
hosts and the form: anthropic, github, gitlab, gitlab-api, huggingface, npm, openai and
pypi, which needs your index as --host.

The value stays where it is kept: in a variable (--env), in a file that is yours alone
(--token-file), in the system's keyring (--keyring), or with a command that prints it. A
key stays in your ssh-agent (--ssh-agent), which must have it.
Without one of them the template names the variable of the service's own tools; github
asks gh, where that is installed. A command runs without a shell, by its absolute path.

--keyring asks for the token, or reads a line of the standard input, and stores it. The
token is never an argument, and never printed.`,
		Example: `  workshop credential add github
  workshop credential add npm --keyring
  workshop credential add tickets --env TICKETS_TOKEN --host tickets.example.org
  workshop credential add vault --host api.example.org -- vault read -field=token secret/api
  workshop credential add work-key --ssh-agent SHA256:… --host git.example.org`,
		Args: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args = args[:at]
			}
			return command.Args(1, 1)(cmd, args)
		},
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if a.FileGiven() {
				return command.UsageError(cmd, "--file is the workshop file; the file of a token is --token-file")
			}
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				if n.Command = args[at:]; len(n.Command) == 0 {
					return command.UsageError(cmd, "there is no command after --")
				}
			}
			n.Name, n.Secret = args[0], a.AskSecret(secretsource.MaxValue+2)
			return a.add(ctx, n)
		}),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return command.Beginning(prefix, nil, templates()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	f := cmd.Flags()
	f.StringVar(&n.Template, "template", "", "the service, where the credential has another name")
	_ = cmd.RegisterFlagCompletionFunc("template", cobra.FixedCompletions(templates(), cobra.ShellCompDirectiveNoFileComp))
	f.StringVar(&n.Env, "env", "", "the environment `variable` that has the value where the workshop is started")
	f.StringVar(&n.File, "token-file", "", "the file that has the value, mode 0600")
	_ = cmd.MarkFlagFilename("token-file")
	f.StringVar(&n.Keyring, "keyring", "", "keep the value in the system's keyring, as `entry`")
	f.Lookup("keyring").NoOptDefVal = app.OwnEntry
	f.StringVar(&n.Agent, "ssh-agent", "", "the `fingerprint` of a key in your ssh-agent, as ssh-add -l shows it")
	_ = cmd.RegisterFlagCompletionFunc("ssh-agent", func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		keys := a.AgentKeys()
		if len(keys) == 0 {
			return []string{"SHA256:"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return command.Beginning(prefix, nil, keys), cobra.ShellCompDirectiveNoFileComp
	})
	f.StringVar(&n.KnownHosts, "known-hosts", "", "the file that has the hosts of the key; default: ~/.ssh/known_hosts")
	_ = cmd.MarkFlagFilename("known-hosts")
	f.StringArrayVar(&n.Hosts, "host", nil, "HOST[:PORT] that it may go to (repeatable)")
	command.FreeText(cmd, "host")
	f.StringVar(&n.As, "as", "", "how it is sent: bearer, github, proxy, header:NAME or basic:USER")
	_ = cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions([]string{"bearer", "github", "proxy", "header:", "basic:"}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	f.DurationVar(&n.Lifetime, "ttl", 0, "how long a value is good for, 1m to 720h; default: until it is refused")
	command.FreeText(cmd, "ttl")
	f.StringVar(&n.Authorities, "ca", "", "file of the authorities that the hosts are verified by, in place of the machine's")
	_ = cmd.MarkFlagFilename("ca", "pem", "crt")
	return cmd
}

func templates() (names []string) {
	for _, t := range credential.Templates() {
		names = append(names, t.Name)
	}
	return names
}

func (a verbs) add(ctx context.Context, n app.NewCredential) error {
	added, err := a.AddCredential(ctx, n)
	if err != nil {
		return err
	}
	file := app.Printable(added.File)
	if added.Stored != "" {
		a.Say("stored the value in the keyring, as %s of %s", app.Printable(added.Stored), secretsource.Service)
	}
	if added.New {
		a.Say("wrote %s", file)
	}
	fmt.Fprintf(a.Out, "%s:%d: %s\n", file, added.Line, app.Printable(added.Text))
	use, reads := "for `allow` in a workshop.yaml, with your own paths:", "reads its value"
	switch {
	case added.IsKey:
		use, reads = "for `agents` in the network of a workshop.yaml:", "looks for the key and its hosts"
	case added.As == "proxy":
		use = "for `network` in a workshop.yaml:"
	}
	fmt.Fprintln(a.Out, use)
	for _, line := range added.Lines {
		fmt.Fprintln(a.Out, "  "+app.Printable(line))
	}
	a.Say("nothing uses it until `workshop up` asks you; `workshop credential test %s` %s now", added.Name, reads)
	return nil
}
