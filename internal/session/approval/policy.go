package approval

import (
	"fmt"
	"slices"

	"github.com/llmdo/workshop/internal/callrule"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/edit"
)

// Decide is pure. Of the rules, the first that is about the call decides: one
// that lets pass must surely be, one that asks or denies may be.
func (p *Policy) Decide(c Call) Verdict {
	v := p.byFile(c)
	switch {
	case v.Decision == workshop.ApprovalDeny:
		return v
	case p.Max == workshop.ApprovalDeny:
		v.Decision, v.Why = workshop.ApprovalDeny, "your setting approvals_max is deny"
		return v
	case v.Decision == workshop.ApprovalAuto && !p.mayGrant(c, v):
		v.Decision, v.capped = workshop.ApprovalAsk, true
		v.Why += ", but your setting approvals_max is ask"
	}
	if v.Decision == workshop.ApprovalAuto {
		return v
	}
	switch {
	case p.Strict:
		v.Decision, v.Why = workshop.ApprovalDeny, v.Why+", and --strict asks nobody"
	case p.ApproveAll:
		v.Decision, v.Why = workshop.ApprovalAuto, v.Why+", and --approve-all says yes"
	case p.obeyed(c):
		v.Why, v.obeyed = "programs on your machine run or obey this file (B8); "+v.Why, true
	}
	return v
}

// obeyed reports whether the call writes what programs of the host run or obey.
func (p *Policy) obeyed(c Call) bool {
	file, ok := callrule.Written(p.call(c))
	return ok && p.Obeyed != nil && p.Obeyed(c.Worker, file)
}

// mayGrant reports whether an auto of the file counts.
func (p *Policy) mayGrant(c Call, v Verdict) bool {
	return p.Max == workshop.ApprovalAuto || readsInside(c.Tool) ||
		v.rule != nil && slices.Contains(p.Accepted, Rule{v.rule.Tool, v.rule.Match})
}

// byFile is what the file says, or what is said without one.
func (p *Policy) byFile(c Call) Verdict {
	call := p.call(c)
	unsure := "" // a rule denies what this may be
	sure := func(v Verdict) Verdict {
		if unsure != "" && v.Decision == workshop.ApprovalAuto {
			v = Verdict{Decision: workshop.ApprovalAsk, Why: "it may be what " + unsure + " is about", unsure: true}
		}
		return v
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		rule, _ := callrule.Parse(r.Tool, r.Match) // one that can't be read grants nothing
		v := Verdict{Decision: r.Approval, Why: place(r), rule: r}
		switch r.Approval {
		case workshop.ApprovalAuto:
			if rule.Grants(call) {
				return sure(v)
			}
		case workshop.ApprovalDeny:
			switch rule.Restricts(call) {
			case callrule.Yes:
				return v
			case callrule.Maybe:
				unsure = place(r)
			}
		default:
			if is := rule.Restricts(call); is != callrule.No {
				v.Decision, v.unsure = workshop.ApprovalAsk, is != callrule.Yes || unsure != ""
				return v
			}
		}
	}
	return sure(p.byDefault(c))
}

func (p *Policy) byDefault(c Call) Verdict {
	if !p.Given {
		if readsInside(c.Tool) {
			return Verdict{Decision: workshop.ApprovalAuto, Why: "it only reads inside the worker"}
		}
		return Verdict{Decision: workshop.ApprovalAsk, Why: "no rule lets it pass"}
	}
	v := Verdict{Decision: p.Default, Why: "approvals.default is " + string(p.Default)}
	if p.Default != workshop.ApprovalAuto && p.Default != workshop.ApprovalDeny {
		v.Decision = workshop.ApprovalAsk
	}
	return v
}

func (p *Policy) call(c Call) callrule.Call {
	return callrule.Call{Tool: c.Tool, Args: c.Args, Workdir: p.Workdirs[c.Worker]}
}

// readsInside reports whether a tool changes nothing and reaches nothing outside of
// the worker. What an MCP server says of its own tools doesn't count.
func readsInside(name string) bool {
	s, ok := tool.Find(name)
	return ok && s.ReadOnly && !s.OpenWorld
}

// place is a rule with its position.
func place(r *workshop.ApprovalRule) string {
	text := "the rule " + grant.DecisionText(r.Tool, r.Match, r.Approval)
	if at := r.At.Range; at.Filename != "" {
		text = fmt.Sprintf("%s:%d, %s", at.Filename, at.Start.Line, text)
	}
	return text
}

// Line is the rule as an item of approvals.rules that lets calls pass.
func (r Rule) Line() string {
	return "- " + edit.Rule{Tool: r.Tool, Match: r.Match, Approval: string(workshop.ApprovalAuto)}.String()
}
