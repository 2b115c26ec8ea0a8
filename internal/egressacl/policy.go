package egressacl

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// rules are those of all rooms, in the order in which the first that matches decides.
type rules struct {
	exact  []firewall.Rule // names
	wild   []firewall.Rule // wildcards, the longest first
	ranges []firewall.Rule
	deny   []firewall.Rule
	// endpoints are hosts that are reached at their endpoint alone.
	endpoints []string
	// guard are the ports on which the guard connects to addresses of names, private those
	// where they may be private.
	guard, private []firewall.PortRange

	list diag.List
}

// named is what the proxies are called in diagnostics.
const (
	ofSquid = "squid"
	ofEnvoy = "Envoy"
)

// gather joins the rooms of a policy; nil has none.
func gather(p *firewall.Policy, proxy string) *rules {
	g := &rules{}
	if p == nil {
		return g
	}
	for _, r := range p.Rooms {
		if r.Mode == firewall.Open {
			g.guard = append(g.guard, firewall.AllPorts)
			g.tell(diag.Warning, "export-closed", firewall.Rule{}, fmt.Sprintf("network: open of %s is not in the file, which opens the lines of allow alone", strings.Join(r.Workers, ", ")),
				"The guard lets them reach every public name.", "")
		}
	}
	for _, l := range lines(p, func(r firewall.RoomPolicy) []firewall.Rule { return r.Deny }) {
		g.denied(l, p, proxy)
	}
	for _, l := range lines(p, func(r firewall.RoomPolicy) []firewall.Rule { return r.Allow }) {
		g.allowed(l, p, proxy)
	}
	sortfunc.Stable(g.wild, func(a, b firewall.Rule) int { return cmp.Compare(depth(b.Host), depth(a.Host)) })
	g.list = g.list.Sorted()
	return g
}

// depth orders wildcards that match the same name: a longer base, then one label.
func depth(p firewall.HostPattern) int {
	base, more := p.Base()
	return 2*strings.Count(base, ".") + max(more, 0)
}

// line is a rule with the rooms that have it.
type line struct {
	firewall.Rule
	rooms []int
}

// lines are those of all rooms, each once, in order.
func lines(p *firewall.Policy, of func(firewall.RoomPolicy) []firewall.Rule) (out []*line) {
	known := map[string]*line{}
	for i, room := range p.Rooms {
		for _, r := range of(room) {
			key := fmt.Sprint(r.Target(), r.Ports, r.Private, r.ECH, r.Upload, r.Endpoint)
			l := known[key]
			if l == nil {
				l = &line{Rule: r}
				known[key], out = l, append(out, l)
			}
			if !slices.Contains(l.rooms, i) {
				l.rooms = append(l.rooms, i)
			}
		}
	}
	return out
}

// workers of the rooms that have a line; "" for all.
func (l *line) workers(p *firewall.Policy) string {
	if len(l.rooms) == len(p.Rooms) {
		return ""
	}
	var names []string
	for _, i := range l.rooms {
		names = append(names, p.Rooms[i].Workers...)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (g *rules) denied(l *line, p *firewall.Policy, proxy string) {
	if l.Template != "" {
		g.tell(diag.Error, "export-deny-variable", l.Rule, "the deny line "+written(l.Rule)+" has a variable, whose value is not written into files",
			"Without it the file would allow what the guard refuses.", "write the name or the range into the line")
		return
	}
	if who := l.workers(p); who != "" {
		g.tell(diag.Warning, "export-narrower", l.Rule, fmt.Sprintf("%s is denied to %s, and by the file to every client", l.Target(), who),
			proxy+" doesn't know workers.", oneRoom)
	}
	g.deny = append(g.deny, l.Rule)
}

// written is a line's target as its file has it.
func written(r firewall.Rule) string { return cmp.Or(r.Source.Template, r.Target()) }

const oneRoom = "`--worker NAME` exports what one worker may reach"

func (g *rules) allowed(l *line, p *firewall.Policy, proxy string) {
	r := l.Rule
	if !r.CIDR.IsValid() {
		g.guard = append(g.guard, r.Ports...)
		if r.Private {
			g.private = append(g.private, r.Ports...)
		}
	}
	switch {
	case r.Template != "":
		g.left(r, written(r)+" has a variable, whose value is not written into files", "")
		return
	case !r.Endpoint.IsZero():
		g.endpoints = append(g.endpoints, r.Host.String())
		g.left(r, fmt.Sprintf("the endpoint %s lets single requests to %s through", r.Endpoint.At, r.Target()), proxy+" can't look into TLS.")
		return
	case !r.Upload.IsZero():
		g.left(r, fmt.Sprintf("the budget %s of %s can't be kept", r.Upload, r.Target()), proxy+" counts no bytes of a time.")
		return
	case !r.Host.IsZero() && r.Host.Unopenable():
		return // nor does the guard open it; loading said so
	}
	if r.ECH {
		g.tell(diag.Warning, "export-wider", r, "ech: allow of "+r.Target()+" is what the file does for every name",
			proxy+" passes tunnels on without reading the TLS hello in them.", "")
	}
	if who := l.workers(p); who != "" {
		g.tell(diag.Warning, "export-wider", r, fmt.Sprintf("%s is for %s alone, and by the file for every client", r.Target(), who),
			proxy+" doesn't know workers.", oneRoom)
	}
	switch {
	case r.CIDR.IsValid():
		if hidden := special(r.CIDR); hidden != "" {
			g.tell(diag.Warning, "export-narrower", r, fmt.Sprintf("%s is open by address alone, not for names with such addresses", r.CIDR),
				"By the guard a range opens "+hidden+" addresses of allowed names, too.", "add `private: true` to the name's line where that is meant")
		}
		g.ranges = append(g.ranges, r)
	case r.Host.IsWildcard():
		g.tell(diag.Warning, "export-wider", r, "the number of new names under "+r.Target()+" has no bound in the file",
			"The guard looks up 60 at once, and one more each second.", "name the hosts where names could carry data away")
		g.wild = append(g.wild, r)
	default:
		g.exact = append(g.exact, r)
	}
}

// special names a class of addresses in the range that lines open: "private".
func special(p netip.Prefix) string {
	for _, r := range firewall.ClassRanges() {
		if r.Class.Openable() && r.Prefix.Overlaps(p) {
			return r.Class.String()
		}
	}
	return ""
}

// left says that a line is not in the file: what only it opens is closed there.
func (g *rules) left(r firewall.Rule, what, why string) {
	g.tell(diag.Warning, "export-closed", r, what+", so the file leaves it closed", why, "")
}

func (g *rules) tell(s diag.Severity, code string, r firewall.Rule, summary, detail, hint string) {
	d := diag.Diagnostic{Severity: s, Code: code, Summary: summary, Detail: detail, Hint: hint, Range: r.Source.Range}
	if !slices.ContainsFunc(g.list, func(o diag.Diagnostic) bool { return o.Summary == d.Summary && o.Range == d.Range }) {
		g.list = append(g.list, d)
	}
}

// rangesOf are the addresses of the classes, without ranges inside others of them.
func rangesOf(is func(firewall.Class) bool) (out []netip.Prefix) {
	for _, r := range firewall.ClassRanges() {
		if is(r.Class) {
			out = append(out, r.Prefix)
		}
	}
	return compact(out)
}

// neverRanges are those that no line opens.
func neverRanges() []netip.Prefix {
	return rangesOf(func(c firewall.Class) bool { return !c.Openable() })
}

// privateRanges are those that `private: true` opens to names.
func privateRanges() []netip.Prefix {
	return rangesOf(func(c firewall.Class) bool { return c == firewall.Private || c == firewall.Shared })
}

// benchmarkRanges are those that only a range opens.
func benchmarkRanges() []netip.Prefix {
	return rangesOf(func(c firewall.Class) bool { return c == firewall.Benchmark })
}

// compact leaves out ranges inside others: squid warns about each.
func compact(in []netip.Prefix) (out []netip.Prefix) {
	for i, p := range in {
		if !slices.ContainsFunc(in, func(o netip.Prefix) bool { return o.Overlaps(p) && o.Bits() < p.Bits() }) && !slices.Contains(in[:i], p) {
			out = append(out, p)
		}
	}
	return out
}

// positions are the places of lines, each once, fit for a comment.
func positions(all []firewall.Rule) string {
	var out []string
	for _, r := range all {
		at := r.Line
		if r.Preset != "" {
			at += " (preset " + r.Preset + ")"
		}
		if at = plain(at); at != "" && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return strings.Join(out, ", ")
}

// plain keeps a text in its comment: a file may be called anything.
func plain(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || c == '\\' {
			return '?'
		}
		return c
	}, s)
}

// portWords are the ports for a list with blanks; "" for all.
func portWords(ports []firewall.PortRange) string {
	if len(ports) == 1 && ports[0] == firewall.AllPorts {
		return ""
	}
	return strings.ReplaceAll(firewall.FormatPorts(ports), ",", " ")
}
