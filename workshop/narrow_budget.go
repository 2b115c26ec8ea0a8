package workshop

import (
	"fmt"

	"github.com/llmdo/workshop/firewall"
)

// budgetKept reports whether inner sends no more than the line o of outer, which
// has a budget, lets through; else it gives the line of inner that does, or none
// where inner is open and needs no line for it. The guard counts for the longest
// line that a name fits, so a name keeps its budget although a wider line without
// one covers it too.
func budgetKept(o firewall.Rule, inner, outer Network) (over firewall.Rule, kept bool) {
	own := func(q firewall.Rule) bool {
		return inside(q, o) && inside(o, q) && keepsBudget(q, o) && len(firewall.SubtractPorts(o.Ports, q.Ports)) == 0
	}
	if inner.Mode.V == firewall.Open && !anyRule(inner.Allow, own) {
		return firewall.Rule{}, false // reached without a line
	}
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
			if !anyRule(inner.Allow, own) {
				return r, false
			}
		}
	}
	return firewall.Rule{}, true
}

// budgetExcess says that r sends more than the line o of the outer network.
func budgetExcess(r, o firewall.Rule, inner Network) excess {
	x := excess{key: "network.allow", at: r.Source.Range, grant: o.Source.Range, hint: budgetHint(r, o),
		summary: fmt.Sprintf("%s sends more than the workshop's upload: %s for %s", ruleText(r), o.Upload, o.Target())}
	if len(r.Ports) == 0 {
		x.at = inner.Source.Range
		x.summary = fmt.Sprintf("the open network sends more than the workshop's upload: %s for %s", o.Upload, o.Target())
	}
	return x
}

func budgetHint(r, o firewall.Rule) string {
	if len(r.Ports) > 0 && inside(r, o) {
		return fmt.Sprintf("add `upload: %s` or less to it", o.Upload)
	}
	return fmt.Sprintf("write a line for %q with `upload: %s` or less here too", o.Target(), o.Upload)
}

// inside reports whether o names all that r names.
func inside(r, o firewall.Rule) bool { return sameTarget(r, o) }

// keepsBudget reports whether whatever keeps to r's budget keeps to o's.
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
