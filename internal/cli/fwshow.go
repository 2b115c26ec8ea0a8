package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/workshop"
)

func (a *program) firewallShowCommand() *cobra.Command {
	worker := ""
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what workers may reach",
		Long: `show prints the network policy by rooms: workers that may reach the same share
one. Each line says where it is written. If the workshop is up, what the guard
does now comes with it: live changes and when they end, rooms that learn, budgets
that are used up, and whether the guard has the policy of the file.

--format iptables prints the rules inside each room. They lead connections to the
guard and depend on ports alone; names are the guard's.`,
		Example: `  workshop firewall show
  workshop firewall show --worker greeter --format iptables
  workshop firewall show --format json | jq '.rooms[].allow[].target'`,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.firewallShow(ctx, cmd, worker)
		}),
	}
	cmd.Flags().StringVar(&worker, "worker", "", "only the room of this worker")
	a.completeWorkerFlag(cmd)
	return cmd
}

func (a *program) firewallShow(ctx context.Context, cmd *cobra.Command, worker string) error {
	format, err := a.formatOf(cmd)
	if err != nil {
		return err
	}
	v, err := a.firewallView(ctx)
	if err != nil {
		return err
	}
	defer v.close()
	if worker != "" {
		if err := v.c.CheckWorkers([]string{worker}); err != nil {
			return err
		}
	}
	doc := v.document(worker)
	switch format {
	case "json":
		err = a.writeJSON(doc)
	case "iptables":
		a.showRules(v, worker)
	default:
		err = a.showText(v, doc)
	}
	if v.state != nil {
		a.SayClosed(*v.state)
	}
	if v.missing != nil {
		a.say("only what %s says: %v", a.Shown(v.c.ProjectRef.File), v.missing)
	}
	if v.changed() {
		a.warn("%s", changedText(a.Shown(v.c.ProjectRef.File)))
	}
	return err
}

func changedText(file string) string {
	return "the guard has another policy than " + file + ": `workshop firewall reload` gives it that one" +
		" (where workers, modes or resolvers changed: `workshop up`)"
}

// fwDocument is the result of show.
type fwDocument struct {
	Workshop string   `json:"workshop"`
	Project  string   `json:"project"`
	File     string   `json:"file"`
	Digest   string   `json:"digest,omitempty"` // of the file's policy
	Rooms    []fwRoom `json:"rooms"`
	None     []string `json:"no_network,omitempty"` // workers
	// Upstreams that the file names, or the user by a variable of it.
	Upstreams []fwUpstream `json:"upstreams,omitempty"`
	Running   *fwRunning   `json:"running,omitempty"`
}

// fwUpstream is a resolver or the proxy.
type fwUpstream struct {
	control.Upstream
	NamedBy string `json:"named_by"` // file, user
}

type fwRoom struct {
	Room    string        `json:"room"`
	Workers []string      `json:"workers"`
	Mode    firewall.Mode `json:"mode"`
	Allow   []fwRule      `json:"allow"`
	Deny    []fwRule      `json:"deny"`
}

// fwRule is one line of the file. Target is what it is about, with the values
// of variables.
type fwRule struct {
	Target    string `json:"target"`
	Ports     string `json:"ports"`
	Private   bool   `json:"private,omitempty"`
	ECH       bool   `json:"ech,omitempty"`
	Upload    string `json:"upload,omitempty"`
	AnyTenant bool   `json:"any_tenant,omitempty"`
	Preset    string `json:"preset,omitempty"`
	Line      string `json:"line"`
}

// fwRunning is what the guard does now.
type fwRunning struct {
	// Current tells that the guard has the policy of the file.
	Current bool `json:"current"`
	control.State
}

// document gathers what is shown of a worker's room, or of all.
func (v *fwView) document(worker string) fwDocument {
	d := fwDocument{Workshop: v.c.Workshop.Name.V, Project: v.c.Name, File: v.c.Base(), Rooms: []fwRoom{}}
	if p := v.c.Compiled.Policy; p != nil {
		d.Digest = firewall.Digest(p)
		d.Upstreams = fwUpstreams(&v.c.Workshop.Container.Network)
	}
	shown := map[string]bool{}
	for _, r := range v.file {
		if worker != "" && !slices.Contains(r.Workers, worker) {
			continue
		}
		shown[r.Room] = true
		d.Rooms = append(d.Rooms, fwRoom{Room: r.Room, Workers: r.Workers, Mode: r.Mode, Allow: fwRules(r.Allow), Deny: fwRules(r.Deny)})
	}
	for _, name := range v.none {
		if worker == "" || worker == name {
			d.None = append(d.None, name)
		}
	}
	if v.state == nil {
		return d
	}
	d.Running = &fwRunning{Current: !v.changed(), State: *v.state}
	if worker != "" {
		s := &d.Running.State
		s.Live = slices.DeleteFunc(slices.Clone(s.Live), func(l firewall.Live) bool { return l.Room != "" && !shown[l.Room] })
		s.Rooms = slices.DeleteFunc(slices.Clone(s.Rooms), func(r control.RoomState) bool { return !shown[r.Room] })
		learning := map[string]time.Time{}
		for room, until := range s.Learning {
			if shown[room] {
				learning[room] = until
			}
		}
		s.Learning = learning
	}
	return d
}

func fwUpstreams(n *workshop.Network) (out []fwUpstream) {
	add := func(kind, at string, by workshop.Origin) {
		u := fwUpstream{control.Upstream{Kind: kind, Address: at}, "file"}
		if by == workshop.OfUser {
			u.NamedBy = "user"
		}
		out = append(out, u)
	}
	for _, r := range n.DNS {
		if a, err := firewall.ParseResolver(r.V); err == nil {
			add("resolver", a.String(), r.NamedBy)
		}
	}
	if x, err := firewall.ParseProxy(n.Proxy.V); err == nil {
		add("proxy", x.String(), n.Proxy.NamedBy)
	}
	return out
}

func fwRules(rules []firewall.Rule) []fwRule {
	out := []fwRule{}
	for _, r := range rules {
		out = append(out, fwRule{
			Target: r.Target(), Ports: rulePorts(r.Ports), Private: r.Private, ECH: r.ECH, Upload: r.Upload.String(),
			AnyTenant: r.AnyTenant, Preset: r.Preset, Line: r.Line,
		})
	}
	return out
}

// rulePorts is "80,443", "all".
func rulePorts(ports []firewall.PortRange) string {
	if slices.Equal(ports, []firewall.PortRange{firewall.AllPorts}) {
		return "all"
	}
	return firewall.FormatPorts(ports)
}

// options are what a line has beside target and ports.
func (r fwRule) options() string {
	var parts []string
	for word, is := range map[string]bool{"private": r.Private, "ech: allow": r.ECH, "any_tenant": r.AnyTenant} {
		if is {
			parts = append(parts, word)
		}
	}
	slices.Sort(parts)
	if r.Upload != "" {
		parts = append(parts, "upload: "+r.Upload)
	}
	if r.Preset != "" {
		parts = append(parts, "preset "+r.Preset)
	}
	return strings.Join(parts, ", ")
}

// showRules prints the rules of the rooms, as they are with what is live.
func (a *program) showRules(v *fwView, worker string) {
	for _, r := range v.effective {
		if worker != "" && !slices.Contains(r.Workers, worker) {
			continue
		}
		rules := rulesetOf(r)
		for _, f := range []firewall.Family{firewall.V4, firewall.V6} {
			fmt.Fprintf(a.Out, "# room %s, rules.v%d: %s (%s)\n%s", r.Room, f, strings.Join(r.Workers, ", "), r.Mode, rules.Text(f))
		}
	}
	for _, name := range v.none {
		if worker == "" || worker == name {
			fmt.Fprintf(a.Out, "# no room: %s (none): a network namespace of its own, without rules: nothing leads out of it\n", name)
		}
	}
}
