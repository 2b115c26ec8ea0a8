package firewall

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

func (a verbs) showCommand() *cobra.Command {
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
		Annotations: command.Formats("text", "json", "iptables"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.show(ctx, cmd, worker)
		}),
	}
	cmd.Flags().StringVar(&worker, "worker", "", "only the room of this worker")
	return cmd
}

func (a verbs) show(ctx context.Context, cmd *cobra.Command, worker string) error {
	format, err := a.Format(cmd)
	if err != nil {
		return err
	}
	v, err := a.ViewPolicy(ctx, worker)
	if err != nil {
		return err
	}
	doc := v.Document(worker)
	switch format {
	case "json":
		err = a.WriteJSON(doc)
	case "iptables":
		a.showRules(v, worker)
	default:
		err = a.showText(doc)
	}
	if v.State != nil {
		a.SayClosed(*v.State)
	}
	if v.Missing != nil {
		a.Say("only what %s says: %v", v.File, v.Missing)
	}
	if v.Changed() {
		a.Warn("%s", changedText(v))
	}
	return err
}

// changedText says that the guard has another policy than the file.
func changedText(v *app.PolicyView) string {
	if stale := v.StaleModes(); len(stale) > 0 {
		return app.StaleModesText(stale, v.File)
	}
	return "the guard's policy differs from " + v.File + ": apply it with `workshop firewall reload`" +
		" (where workers or resolvers changed: `workshop up`)"
}

// showRules prints the rules of the rooms, as they are with what is live.
func (a verbs) showRules(v *app.PolicyView, worker string) {
	for _, r := range v.Effective {
		if worker != "" && !slices.Contains(r.Workers, worker) {
			continue
		}
		rules := firewall.NewRuleset(firewall.RulesetOptions{Ports: firewall.RoomPorts(r), Open: r.Mode == firewall.Open})
		for _, f := range []firewall.Family{firewall.V4, firewall.V6} {
			fmt.Fprintf(a.Out, "# room %s, rules.v%d: %s (%s)\n%s", r.Room, f, strings.Join(r.Workers, ", "), r.Mode, rules.Text(f))
		}
	}
	for _, name := range v.None {
		if worker == "" || worker == name {
			fmt.Fprintf(a.Out, "# no room: %s (none): a network namespace of its own, without rules: nothing leads out of it\n", name)
		}
	}
}

// showText prints the policy for a person: the rooms with their lines, then
// what the guard does.
func (a verbs) showText(d app.PolicyDocument) error {
	w := a.Table()
	for i, r := range d.Rooms {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s, in %s\n", app.WorkersText(r.Workers), modeText(r)+runsText(d.Running, r.Mode, r.Workers), r.Room)
		for _, line := range r.Allow {
			showRule(w, "allow", line)
		}
		for _, line := range r.Deny {
			showRule(w, "deny", line)
		}
		w.Flush() // rooms have columns of their own
	}
	if len(d.None) > 0 {
		if len(d.Rooms) > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: none, no network at all%s\n", app.WorkersText(d.None), runsText(d.Running, firewall.None, d.None))
	}
	if len(d.Upstreams) > 0 {
		fmt.Fprintln(w)
	}
	for _, u := range d.Upstreams {
		fmt.Fprintf(w, "%s (named by the %s)\n", app.UpstreamText(u.Upstream), u.NamedBy)
	}
	if d.Running != nil {
		fmt.Fprintln(w)
		showRunning(w, d.Running)
	}
	return w.Flush()
}

func modeText(r app.PolicyRoom) string {
	switch {
	case r.Mode == firewall.Open:
		return "open, every public name and address over TCP"
	case len(r.Allow) == 0:
		return r.Mode.String() + ", nothing is allowed"
	}
	return r.Mode.String()
}

// runsText says which workers run with another mode than the file's.
func runsText(s *app.RunningPolicy, file firewall.Mode, workers []string) string {
	if s == nil {
		return ""
	}
	by := map[firewall.Mode][]string{}
	for _, w := range workers {
		if mode := s.Mode(w); mode != file {
			by[mode] = append(by[mode], w)
		}
	}
	var parts []string
	for _, mode := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s runs with %s", app.WorkersText(by[mode]), mode))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func showRule(w io.Writer, verb string, r app.PolicyRule) {
	options := ruleOptions(r)
	if options != "" {
		options = "\t" + options
	}
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s%s\n", verb, r.Target, r.Ports, r.Line, options)
}

// ruleOptions are a line's other keys.
func ruleOptions(r app.PolicyRule) string {
	var parts []string
	for word, is := range map[string]bool{"private": r.Private, "ech: allow": r.ECH, "any_tenant": r.AnyTenant, "encoded_slash": r.EncodedSlash} {
		if is {
			parts = append(parts, word)
		}
	}
	slices.Sort(parts)
	if r.At != "" {
		parts = append(parts, "at "+r.At+", "+r.URL+": "+r.LetsThrough())
	}
	if r.Credential != "" {
		parts = append(parts, "with the credential "+r.Credential)
	}
	if r.Upload != "" {
		parts = append(parts, "upload: "+r.Upload)
	}
	if r.Preset != "" {
		parts = append(parts, "preset "+r.Preset)
	}
	if r.DeniedLive != "" {
		parts = append(parts, "denied by "+app.Printable(r.DeniedLive))
	}
	return strings.Join(parts, ", ")
}

// showRunning prints what isn't in the file.
func showRunning(w io.Writer, s *app.RunningPolicy) {
	policy := "the policy of the file"
	if !s.Current {
		policy = "not the policy of the file"
	}
	fmt.Fprintf(w, "guard: since %s, generation %d, %s\n", app.WhenText(s.Started), s.Generation, policy)
	for _, l := range s.Live {
		rule := app.NewPolicyRule(l.Rule)
		fmt.Fprintf(w, "  live\t%s %s\t%s\t%s\t%s\n", app.RuleChange{Deny: l.Deny}.Verb(), app.Printable(rule.Target), rule.Ports, app.EndText(l.Until, l.Deny), strings.TrimSuffix(workersOf(s, l.Room)+", "+ruleOptions(rule), ", "))
	}
	for _, room := range slices.Sorted(maps.Keys(s.Learning)) {
		fmt.Fprintf(w, "  learning\tevery name but those of never-list and deny\t\t%s\t%s\n", app.EndText(s.Learning[room], false), workersOf(s, room))
	}
	for _, r := range s.Rooms {
		for _, b := range r.Budgets {
			fmt.Fprintf(w, "  budget\t%s\t%s\t%s of it used\t%s\t\n", app.Printable(b.Target), b.Upload, units.BytesSize(float64(b.Used)), app.Printable(b.Line))
		}
	}
	for _, r := range s.Rooms {
		state := fmt.Sprintf("%s, %d packets refused by the rules", app.Count(r.Connections, "connection"), r.Refused)
		if r.Kind == "anyip" {
			state = fmt.Sprintf("%s, %d packets refused by the kernel (AnyIP, without nf_tables)", app.Count(r.Connections, "connection"), r.Refused)
		}
		switch {
		case r.Closed != "":
			state = "closed: " + app.Printable(r.Closed)
		case !r.Served:
			state = "the guard doesn't have its sockets: closed"
		}
		fmt.Fprintf(w, "  %s\t%s\t\t\t\n", app.Printable(r.Room), state)
	}
	if s.Panics > 0 {
		fmt.Fprintf(w, "  %d connections or requests ended by an internal error: see the guard's log\n", s.Panics)
	}
	if s.Dropped > 0 {
		fmt.Fprintf(w, "  %d events were counted but not written one by one\n", s.Dropped)
	}
}

// workersOf names the workers of a room of the guard; empty: all.
func workersOf(s *app.RunningPolicy, room string) string {
	if room == "" {
		return "all workers"
	}
	for _, r := range s.Rooms {
		if r.Room == room {
			return app.Printable(app.WorkersText(r.Workers))
		}
	}
	return app.Printable(room)
}
