package workshop

import (
	"fmt"

	"github.com/llmdo/workshop/firewall"
)

// budgetKept tells whether inner sends no more than the line o of outer, which
// has a budget, lets through; else it gives the line of inner that does. The
// guard counts for the longest line that a name fits, so a name keeps its
// budget although a wider line without one covers it too.
func budgetKept(o firewall.Rule, inner, outer Network) (over firewall.Rule, kept bool) {
	for _, r := range inner.Allow {
		if !portsMeet(r.Ports, o.Ports) || keepsBudget(r, o) {
			continue
		}
		switch {
		case inside(r, o):
			longer := func(q firewall.Rule) bool { return inside(q, o) && !inside(o, q) && q.Covers(r) }
			if !anyRule(outer.Allow, longer) {
				return r, false
			}
		case inside(o, r):
			own := func(q firewall.Rule) bool {
				return inside(q, o) && inside(o, q) && keepsBudget(q, o) && len(firewall.SubtractPorts(o.Ports, q.Ports)) == 0
			}
			if !anyRule(inner.Allow, own) {
				return r, false
			}
		}
	}
	return firewall.Rule{}, true
}

func budgetHint(r, o firewall.Rule) string {
	if inside(r, o) {
		return fmt.Sprintf("add `upload: %s` or less to it", o.Upload)
	}
	return fmt.Sprintf("write a line for %q with `upload: %s` or less here too", o.Target(), o.Upload)
}

// inside tells whether o names all that r names.
func inside(r, o firewall.Rule) bool { return sameTarget(r, o) }

// keepsBudget tells whether whatever keeps to r's budget keeps to o's.
func keepsBudget(r, o firewall.Rule) bool {
	x := o
	x.Upload, x.ECH = r.Upload, false
	return len(o.Ports) > 0 && o.Covers(x)
}

func anyRule(rules []firewall.Rule, f func(firewall.Rule) bool) bool {
	for _, r := range rules {
		if f(r) {
			return true
		}
	}
	return false
}
