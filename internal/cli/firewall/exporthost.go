package firewall

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/hostfirewall"
)

// hostOptions are the flags of firewall export for the firewall of this machine.
type hostOptions struct {
	remove    bool
	resolvers []string
}

// exportHost prints rules for the firewall of this machine.
func (a verbs) exportHost(ctx context.Context, cmd *cobra.Command, tool string, o hostOptions) error {
	request := app.HostRulesRequest{Tool: hostfirewall.Tool(tool), Engine: a.EngineGiven()}
	for _, text := range o.resolvers {
		r, err := netip.ParseAddr(text)
		if err != nil || r.Zone() != "" {
			return command.UsageError(cmd, "--resolver %q: not an address", text)
		}
		request.Resolvers = append(request.Resolvers, r.Unmap())
	}
	if o.remove {
		_, err := fmt.Fprint(a.Out, hostfirewall.Remove(request.Tool, max(os.Getuid(), 0)))
		return err
	}
	rules, err := a.HostRules(ctx, request)
	if err != nil {
		return err
	}
	text, err := hostfirewall.Export(request.Tool, rules)
	if err != nil {
		return app.Fail(app.CodeRefused, "%w", err)
	}
	for _, s := range rules.NotHeld {
		a.Say("not held: %s", app.Printable(s))
	}
	_, err = fmt.Fprint(a.Out, text)
	return err
}
