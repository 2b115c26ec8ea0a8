package firewall

import (
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Live is a change of the policy that its file doesn't have. An allow ends with the guard,
// a deny with the workshop, or either at Until.
type Live struct {
	// Room that it applies to; empty: all.
	Room string `json:"room,omitempty"`
	// Deny makes the rule one of deny; else it is one of allow.
	Deny bool `json:"deny,omitempty"`
	// Rule must not have a template or a preset. Its Line is [LiveLine].
	Rule Rule `json:"rule"`
	// Until is when it ends; zero: not earlier.
	Until time.Time `json:"until,omitzero"`
}

// LiveLine is the Line of rules that are live only.
const LiveLine = "workshop firewall"

// Overlay returns a copy of the expanded policy p with live changes, and with the named
// rooms learning.
//
// Of lines with the same target the first decides, so live ones precede the file's, and
// their other keys, such as private, take effect. A live line without a budget keeps
// that of the file's line.
func (p *Policy) Overlay(live []Live, learning func(room string) bool) *Policy {
	q := *p
	q.Rooms = slices.Clone(p.Rooms)
	for i := range q.Rooms {
		r := &q.Rooms[i]
		r.Learn = r.Mode == Restricted && learning != nil && learning(r.Room)
		var allow []Rule
		r.Deny = slices.Clip(r.Deny)
		for _, l := range live {
			switch {
			case l.Room != "" && l.Room != r.Room:
			case l.Deny:
				r.Deny = append(r.Deny, l.Rule)
			default:
				allow = append(allow, l.Rule.withBudgetOf(r.Allow))
			}
		}
		if allow != nil {
			r.Allow = append(allow, r.Allow...)
		}
	}
	return &q
}

// withBudgetOf returns the rule with the smallest budget that lines of the same
// target have for one of its ports, unless it has one.
func (r Rule) withBudgetOf(lines []Rule) Rule {
	if !r.Upload.IsZero() {
		return r
	}
	for i := range lines {
		o := &lines[i]
		if o.Target() == r.Target() && o.Upload.within(r.Upload) && overlap(r.Ports, o.Ports) {
			r.Upload = o.Upload
		}
	}
	return r
}

func overlap(a, b []PortRange) bool {
	for _, x := range a {
		for _, y := range b {
			if x.First <= y.Last && y.First <= x.Last {
				return true
			}
		}
	}
	return false
}

// Fixed returns the part of the policy that a running guard can't change: everything
// but the roots, the lines of the rooms and the positions of their workers. Of an endpoint
// it is the name, the port and the host, not its requests nor its credential.
func (p *Policy) Fixed() *Policy {
	q := *p
	q.Roots = nil
	q.Rooms = slices.Clone(p.Rooms)
	for i := range q.Rooms {
		r := RoomPolicy{Room: q.Rooms[i].Room, Mode: q.Rooms[i].Mode}
		for _, x := range q.Rooms[i].Allow {
			if !x.Endpoint.IsZero() {
				r.Allow = append(r.Allow, Rule{Host: x.Host, Ports: x.Ports, Endpoint: Endpoint{At: x.Endpoint.At, Port: x.Endpoint.Port}})
			}
		}
		sortfunc.Stable(r.Allow, func(a, b Rule) int { return strings.Compare(a.Endpoint.At, b.Endpoint.At) })
		q.Rooms[i] = r
	}
	return &q
}

// Check returns an error if a live change is not valid.
func (l Live) Check() error { return l.Rule.check(l.Deny) }

// RoomPorts returns the ports that a room redirects besides 53, 80 and 443:
// those of its lines, or all while it learns.
func RoomPorts(p RoomPolicy) []PortRange {
	if p.Learn {
		return SubtractPorts([]PortRange{AllPorts}, []PortRange{{53, 53}, {80, 80}, {443, 443}})
	}
	return RedirectPorts(p)
}
