package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
)

// showText prints the policy for a person: the rooms with their lines, then
// what the guard does.
func (a *program) showText(v *fwView, d fwDocument) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	for i, r := range d.Rooms {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s, in %s\n", app.WorkersText(r.Workers), modeText(r), r.Room)
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
		fmt.Fprintf(w, "%s: none, no network at all\n", app.WorkersText(d.None))
	}
	if len(d.Upstreams) > 0 {
		fmt.Fprintln(w)
	}
	for _, u := range d.Upstreams {
		fmt.Fprintf(w, "%s (named by the %s)\n", upstreamText(u.Upstream), u.NamedBy)
	}
	if d.Running != nil {
		fmt.Fprintln(w)
		showRunning(w, v, d.Running)
	}
	return w.Flush()
}

func modeText(r fwRoom) string {
	switch {
	case r.Mode == firewall.Open:
		return "open, every public name and address over TCP"
	case len(r.Allow) == 0:
		return r.Mode.String() + ", nothing is allowed"
	}
	return r.Mode.String()
}

func showRule(w io.Writer, verb string, r fwRule) {
	options := r.options()
	if options != "" {
		options = "\t" + options
	}
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s%s\n", verb, r.Target, r.Ports, r.Line, options)
}

// showRunning prints what isn't in the file.
func showRunning(w io.Writer, v *fwView, s *fwRunning) {
	policy := "the policy of the file"
	if !s.Current {
		policy = "not the policy of the file"
	}
	fmt.Fprintf(w, "guard: since %s, generation %d, %s\n", app.WhenText(s.Started), s.Generation, policy)
	for _, l := range s.Live {
		verb := "allow"
		if l.Deny {
			verb = "deny"
		}
		rule := fwRules([]firewall.Rule{l.Rule})[0]
		fmt.Fprintf(w, "  live\t%s %s\t%s\t%s\t%s\n", verb, app.Printable(rule.Target), rule.Ports, endText(l.Until, l.Deny), strings.TrimSuffix(v.workersOf(l.Room)+", "+rule.options(), ", "))
	}
	for _, room := range slices.Sorted(maps.Keys(s.Learning)) {
		fmt.Fprintf(w, "  learning\tevery name but those of never-list and deny\t\t%s\t%s\n", endText(s.Learning[room], false), v.workersOf(room))
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
func (v *fwView) workersOf(room string) string {
	if room == "" {
		return "all workers"
	}
	for _, r := range v.state.Rooms {
		if r.Room == room {
			return app.Printable(app.WorkersText(r.Workers))
		}
	}
	return app.Printable(room)
}

// endText says when something live ends.
func endText(until time.Time, deny bool) string {
	if until.IsZero() {
		return changeOptions{deny: deny}.end()
	}
	return fmt.Sprintf("until %s (%s)", app.WhenText(until), lengthText(max(0, time.Until(until))))
}
