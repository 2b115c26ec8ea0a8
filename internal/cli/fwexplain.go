package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
)

// explainOptions are the flags of firewall explain.
type explainOptions struct {
	worker         string
	noProbe, check bool
}

func (a *program) firewallExplainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain HOST[:PORT]",
		Short: "Say why a connection is allowed or refused",
		Long: `explain says what becomes of a worker's connection to a name or address: the line
that decides and where it is written, what enforces it, and whether other workers
differ. Without a port it is 443, and 80 where that differs.

If the workshop is up, it also asks the guard, and tries it in the worker: a
question to the guard's DNS, and on 443 a TLS handshake, on 80 a HEAD request, on
other ports a connection. Nothing is sent to a host that isn't allowed. Where
what is seen differs from what the file says, it ends with 1.`,
		Example: `  workshop firewall explain api.example.org
  workshop firewall explain ssh.example.org:22 --worker greeter
  workshop firewall explain 169.254.169.254:80 --no-probe
  workshop firewall explain --check api.example.org || echo refused`,
		Args:              usageArgs(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.firewallExplain(ctx, cmd, args[0], o)
		}),
	}
	cmd.Flags().StringVar(&o.worker, "worker", "", "the worker that connects; may be left out where all may reach the same")
	cmd.Flags().BoolVar(&o.noProbe, "no-probe", false, "try nothing, and don't ask the guard to look anything up")
	cmd.Flags().BoolVar(&o.check, "check", false, "exit with 4 if it is refused")
	a.completeWorkerFlag(cmd)
	return cmd
}

// endpoint is what a worker connects to: a name or an address, and a port; 0
// where none was given.
type endpoint struct {
	name firewall.Name
	addr netip.Addr
	port uint16
}

// host is the name or address alone.
func (x endpoint) host() string {
	if x.addr.IsValid() {
		return x.addr.String()
	}
	return x.name.String()
}

// parseEndpoint reads HOST[:PORT].
func parseEndpoint(text string) (x endpoint, f *app.Failure) {
	host, ports, hasPort := splitPort(text)
	if hasPort {
		list, err := firewall.ParsePorts(ports)
		if err == nil && (len(list) != 1 || list[0].First != list[0].Last) {
			err = errors.New("explain is about one port")
		}
		if err != nil {
			return x, app.Fail(app.CodeUsage, "%s: %w", quoted(text), err)
		}
		x.port = list[0].First
	}
	if p, ok := addressRange(host); ok {
		if strings.Contains(host, "/") {
			return x, app.Fail(app.CodeUsage, "%s: explain is about one address, not about a range", quoted(text))
		}
		x.addr = p.Addr().Unmap()
		return x, nil
	}
	p, err := firewall.ParseHostPattern(host)
	name, exact := p.Name()
	switch {
	case err != nil && p.IsZero():
		f = app.Fail(app.CodeUsage, "%w", err)
		if he, ok := errors.AsType[*firewall.HostError](err); ok && he.Hint != "" {
			f.Hint("%s", he.Hint)
		}
		return x, f
	case !exact:
		return x, app.Fail(app.CodeUsage, "%s: explain is about one name, not about a wildcard", quoted(text))
	}
	x.name = name
	return x, nil
}

// decide says what a room's policy says; a room that isn't there has none.
func (x endpoint) decide(r *firewall.RoomPolicy, port uint16) firewall.Decision {
	if r == nil {
		return firewall.Decision{Reason: firewall.ReasonNone}
	}
	m := r.Compile()
	if x.addr.IsValid() {
		return m.Addr(x.addr, port)
	}
	return m.Name(x.name, port)
}

func (a *program) firewallExplain(ctx context.Context, cmd *cobra.Command, text string, o explainOptions) error {
	format, err := a.formatOf(cmd)
	if err != nil {
		return err
	}
	x, f := parseEndpoint(text)
	if f != nil {
		return f
	}
	v, err := a.firewallView(ctx)
	if err != nil {
		return err
	}
	defer v.close()
	if o.worker != "" {
		if err := v.c.CheckWorkers([]string{o.worker}); err != nil {
			return err
		}
	}
	ports := []uint16{x.port}
	if x.port == 0 {
		ports = []uint16{443, 80}
	}
	var all []*fwExplanation
	for i, port := range ports {
		e, err := v.explain(x, port, o.worker)
		if err != nil {
			return err
		}
		if i > 0 && e.sameAs(all[0]) {
			break
		}
		all = append(all, e)
	}
	for _, e := range all {
		a.tryOut(ctx, v, x, e, o)
	}
	if format == "json" {
		err = a.writeJSON(all)
	} else {
		err = a.explainText(all)
	}
	if err != nil {
		return err
	}
	return a.explainEnd(v, all, o)
}

// explainEnd says what doesn't fit, and gives the exit code.
func (a *program) explainEnd(v *fwView, all []*fwExplanation, o explainOptions) error {
	if v.missing != nil {
		a.say("only what %s says: %v", a.Shown(v.c.ProjectRef.File), v.missing)
	}
	f := &app.Failure{Code: app.CodeFailed}
	var problems []string
	for _, e := range all {
		for _, d := range e.Differences {
			problems = append(problems, e.target()+" for "+e.Worker+": "+d)
		}
	}
	if v.changed() {
		f.Hint("%s", changedText(a.Shown(v.c.ProjectRef.File)))
	}
	if len(problems) > 0 {
		f.Err = fmt.Errorf("what is seen is not what is expected:\n%s", strings.Join(problems, "\n"))
		return f
	}
	a.printFailure(f)
	if o.check && slices.ContainsFunc(all, func(e *fwExplanation) bool { return !e.Allowed }) {
		return app.Exit(app.CodeRefused)
	}
	return nil
}
