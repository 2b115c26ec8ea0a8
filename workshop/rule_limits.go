package workshop

import (
	"fmt"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// echAllow is `ech: allow` of a line of allow; there is no other value.
type echAllow struct{}

func (e *echAllow) decode(d *decoder, n *node, f *field) bool {
	text, ok := d.policyText(n, f)
	if !ok {
		return false
	}
	if text.V != "allow" {
		d.failDetail(text.Source.Range, "bad-value", fmt.Sprintf("ech %q is not a valid value", clip(text.V)),
			"Without the key TLS with an encrypted ClientHello is refused: the name inside can't be checked.", f.example)
		return false
	}
	return true
}

func (e *echAllow) schema(*schemaMaker) object { return object{"enum": []string{"allow"}} }

// uploadBudget is `upload:` of a line of allow.
type uploadBudget firewall.Budget

// budgetPattern is in the JSON Schema; firewall.ParseBudget decides.
const budgetPattern = `^[1-9][0-9]{0,15}[KMG]?/[mhd]$`

func (u *uploadBudget) decode(d *decoder, n *node, f *field) bool {
	text, ok := d.policyText(n, f)
	if !ok {
		return false
	}
	b, err := firewall.ParseBudget(text.V)
	if err != nil {
		d.fail(text.Source.Range, "bad-value", "upload "+err.Error(), "")
		return false
	}
	*u = uploadBudget(b)
	return true
}

func (u *uploadBudget) schema(*schemaMaker) object {
	return object{"type": "string", "pattern": budgetPattern}
}

// checkBudgets warns of a budget next to a line that allows the same without
// one: allows are a union, so which of the two counts is a matter of order.
func (d *decoder) checkBudgets(rules []firewall.Rule) {
	free := map[string]firewall.Rule{}
	for _, r := range rules {
		if _, there := free[r.Target()]; r.Upload.IsZero() && !there {
			free[r.Target()] = r
		}
	}
	for _, r := range rules {
		o, there := free[r.Target()]
		if r.Upload.IsZero() || !there || !portsMeet(r.Ports, o.Ports) {
			continue
		}
		hint := "write the budget there, or remove that line"
		if o.Preset != "" {
			hint = "write the hosts of the preset " + o.Preset + " out: `workshop presets " + o.Preset + "` shows them"
		}
		d.add(diag.Diagnostic{
			Severity: diag.Warning, Code: "budget-unused", Range: r.Source.Range,
			Summary: fmt.Sprintf("the budget for %s may bound nothing: another line allows the same without one", r.Target()),
			Hint:    hint, Related: []diag.Related{{Message: "allowed here", Range: o.Source.Range}},
		})
	}
}

// policyText reads a scalar that becomes part of the guard's policy as it
// is, whatever type YAML reads.
func (d *decoder) policyText(n *node, f *field) (text Value[string], ok bool) {
	g := *f
	g.number, g.literal = true, whyPolicy
	return text, text.decode(d, n, &g)
}
