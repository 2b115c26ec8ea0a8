package workshop

import (
	"fmt"
	"slices"

	"github.com/llmdo/workshop/firewall"
)

// longestExcess reports what inner opens by a line where outer has a longer one that
// opens less: no private addresses, no encrypted hellos, or an upload budget. The
// longest line that a name fits decides, so these hold although a wider line covers the
// name too.
func longestExcess(inner, outer Network, work *effort) (out []excess) {
	if same(inner.Allow, outer.Allow) {
		return nil
	}
	if work.exact && work.spend(len(outer.Allow)*(1+len(inner.Deny))) {
		outer.Allow = firewall.WithoutDenied(outer.Allow, inner.Deny) // the rest is not reached
	}
	more := slices.DeleteFunc(slices.Clone(inner.Allow), func(r firewall.Rule) bool { return !r.Private && !r.ECH })
	for _, o := range outer.Allow {
		rules := more
		if !o.Upload.IsZero() || !o.Endpoint.IsZero() {
			rules = inner.Allow
		}
		if !o.Endpoint.IsZero() {
			o.Ports = []firewall.PortRange{firewall.AllPorts} // it alone has the name
		}
		if !work.spend(1 + len(rules)) {
			break
		}
		if work.exact && o.Template != "" {
			if r := maybeLonger(o, rules, inner); r != nil {
				x := budgetExcess(*r, o, inner)
				x.unknown = true
				out = append(out, x)
			}
			continue
		}
		// A line that isn't covered at all was reported already.
		if r, kept := longestKept(o, rules, inner, outer, work); !kept && (len(r.Ports) == 0 || allowedBy(r, outer)) {
			out = append(out, budgetExcess(r, o, inner))
		}
	}
	return out
}

// maybeLonger is a line of inner that opens more than o, whose variable may name a part
// of it, and that inner lacks; nil if there is none.
func maybeLonger(o firewall.Rule, rules []firewall.Rule, inner Network) *firewall.Rule {
	if firewall.CoveredBy(o, inner.Allow) {
		return nil
	}
	for i := range rules {
		if r := &rules[i]; (r.Template == "" || r.Template == o.Template) && portsMeet(r.Ports, o.Ports) && !keepsTo(*r, o) {
			return r
		}
	}
	return nil
}

// longestKept reports whether inner opens no more than the line o of outer where that
// decides; else it gives the line of inner that does, one of rules, or none where inner
// is open and needs no line for it.
func longestKept(o firewall.Rule, rules []firewall.Rule, inner, outer Network, work *effort) (over firewall.Rule, kept bool) {
	own := func(ports []firewall.PortRange) bool {
		return work.spend(len(inner.Allow)) && anyRule(inner.Allow, func(q firewall.Rule) bool {
			return inside(q, o) && inside(o, q) && keepsTo(q, o) && (!o.Endpoint.IsZero() || len(firewall.SubtractPorts(ports, q.Ports)) == 0)
		})
	}
	if inner.Mode.V == firewall.Open && !o.Upload.IsZero() && !own(o.Ports) {
		return firewall.Rule{}, false // reached without a line
	}
	for _, r := range rules {
		otherEndpoint := !o.Endpoint.IsZero() && !r.Endpoint.IsZero() && o.Endpoint.At != r.Endpoint.At // a line of its own has it
		if otherEndpoint || !portsMeet(r.Ports, o.Ports) || keepsTo(r, o) {
			continue
		}
		switch {
		case inside(r, o):
			longer := func(q firewall.Rule) bool { return inside(q, o) && !inside(o, q) && q.Covers(r) }
			if !work.spend(len(outer.Allow)) || !anyRule(outer.Allow, longer) {
				return r, false
			}
		case inside(o, r):
			both := firewall.SubtractPorts(o.Ports, firewall.SubtractPorts(o.Ports, r.Ports))
			if !own(both) {
				return r, false
			}
		}
	}
	return firewall.Rule{}, true
}

// budgetExcess says that r opens more than the line o of the outer network.
func budgetExcess(r, o firewall.Rule, inner Network) excess {
	x := excess{key: "network.allow", at: r.Source.Range, grant: o.Source.Range, haveOf: Part{Rule: &r}, grantedOf: Part{Rule: &o}, hint: budgetHint(r, o)}
	switch {
	case len(r.Ports) == 0:
		x.at, x.have, x.haveOf.Rule = inner.Source.Range, "any upload to "+o.Target(), nil
		x.summary = fmt.Sprintf("the open network sends more than the workshop's upload: %s for %s", o.Upload, o.Target())
	case !o.Endpoint.IsZero():
		x.summary = fmt.Sprintf("%s reaches %s past the workshop's endpoint %s", ruleText(r), o.Target(), o.Endpoint.At)
	case keepsBudget(r, o):
		x.summary = fmt.Sprintf("%s opens more than the workshop's longer line for %s", ruleText(r), o.Target())
	default:
		x.summary = fmt.Sprintf("%s sends more than the workshop's upload: %s for %s", ruleText(r), o.Upload, o.Target())
	}
	return x
}

func budgetHint(r, o firewall.Rule) string {
	switch {
	case !o.Endpoint.IsZero():
		return fmt.Sprintf("write the line with `at: %s` here too, with the same requests or fewer", o.Endpoint.At)
	case len(r.Ports) > 0 && keepsBudget(r, o):
		return fmt.Sprintf("write a line for %q without `private` and `ech` here too", o.Target())
	case len(r.Ports) > 0 && inside(r, o):
		return fmt.Sprintf("add `upload: %s` or less to it", o.Upload)
	}
	return fmt.Sprintf("write a line for %q with `upload: %s` or less here too", o.Target(), o.Upload)
}

// inside reports whether o names all that r names.
func inside(r, o firewall.Rule) bool { return sameTarget(r, o) }

// keepsTo reports whether whatever keeps to r keeps to o: its budget, and what it opens.
func keepsTo(r, o firewall.Rule) bool {
	return keepsBudget(r, o) && (o.Private || !r.Private) && (o.ECH || !r.ECH) && (o.Endpoint.IsZero() || r.Endpoint.Within(o.Endpoint))
}

// keepsBudget reports whether whatever keeps to r's budget keeps to o's.
func keepsBudget(r, o firewall.Rule) bool {
	x := o
	x.Upload, x.ECH = r.Upload, false
	x.Endpoint, o.Endpoint = firewall.Endpoint{}, firewall.Endpoint{}
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
