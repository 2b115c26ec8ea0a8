package firewall

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/internal/hostfirewall"
)

// exportOptions are the flags of firewall export.
type exportOptions struct {
	target, worker, guard string
	strict                bool
	host                  hostOptions
}

// exportTargets are the values of --for: proxies, and firewalls of this machine.
var (
	proxyTargets  = []string{"squid", "envoy"}
	exportTargets = slices.Concat(proxyTargets, hostfirewall.Tools())
)

func (a verbs) exportCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export --for TARGET",
		Short: "Write the network policy as rules of a proxy or of this machine's firewall",
		Long: `export prints rules for another program, and changes nothing.

With --for squid or envoy it prints what workshop.yaml lets workers reach as rules of an
egress proxy that you run: lines that squid.conf includes, or a configuration of Envoy.
No engine is asked. What the proxy can't decide is closed there, and a warning names the
line; so is each line by which it allows more or less than the guard.

Rules are for clients that ask the proxy themselves. A guard that chains through it
(network.proxy) sends it addresses: --guard names its user at squid, who may connect
to those on the ports of the policy.

With --for iptables, nftables or pf it prints rules by which this machine itself holds
what workshops that are up may reach, should their rooms and guards fail: only guards
leave, over TCP and to their resolvers, to no private range that no line names, and
published ports take connections from loopback alone. They are of all your workshops
(with --engine, of that engine's alone), in chains or a table of their own, and replaced
as a whole. Export again after each ` + "`up`" + ` and ` + "`down`" + `, and after changes of allow lines
or ports. --remove prints what takes them away.`,
		Example: `  workshop firewall export --for squid > /etc/squid/workshop.conf
  workshop firewall export --for squid --guard workshop-guard --worker builder
  workshop firewall export --for envoy --strict > envoy.json
  workshop firewall export --for iptables | sudo sh
  workshop firewall export --for nftables | sudo nft -f -
  workshop firewall export --for iptables --remove | sudo sh`,
		Args: command.Args(0, 0),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if !slices.Contains(exportTargets, o.target) {
				return command.UsageError(cmd, "--for %q: one of %s", o.target, strings.Join(exportTargets, ", "))
			}
			foreign := []string{"remove", "resolver"}
			host := !slices.Contains(proxyTargets, o.target)
			if host {
				foreign = []string{"worker", "guard", "strict"}
			}
			for _, name := range foreign {
				if cmd.Flags().Changed(name) {
					return command.UsageError(cmd, "--%s isn't for --for %s", name, o.target)
				}
			}
			if host {
				return a.exportHost(ctx, cmd, o.target, o.host)
			}
			return a.exportACL(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.target, "for", "", "what the rules are for: "+strings.Join(exportTargets, ", "))
	f.StringVar(&o.worker, "worker", "", "only what this worker may reach")
	f.StringVar(&o.guard, "guard", "", "the user by whom squid knows the workshop's guard")
	f.BoolVar(&o.strict, "strict", false, "warnings fail too")
	f.BoolVar(&o.host.remove, "remove", false, "print what removes the rules of this machine, whatever is up")
	f.StringArrayVar(&o.host.resolvers, "resolver", nil, "address of a resolver that Docker uses for containers, where it isn't found; repeatable")
	command.FreeText(cmd, "guard")
	command.FreeText(cmd, "resolver")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(exportTargets, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// exportACL prints the rules, and what they can't say on the standard error.
func (a verbs) exportACL(ctx context.Context, o exportOptions) error {
	out, err := a.ExportACL(ctx, o.target, o.worker, o.guard)
	if err != nil {
		return err
	}
	if len(out.Diagnostics) > 0 {
		if err := diagtext.Text(a.Err, out.Diagnostics, diagtext.TextOptions{Sources: out.Sources, Width: a.Columns(a.Err)}); err != nil {
			return err
		}
	}
	if code := out.Code(o.strict); code != app.CodeOK {
		return app.Exit(code)
	}
	_, err = a.Out.Write(out.Text)
	return err
}
