package diff

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/callrule"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// level orders approvals: what needs less of a person is more.
func level(a workshop.Approval) int {
	return slices.Index([]workshop.Approval{workshop.ApprovalDeny, workshop.ApprovalAsk, workshop.ApprovalAuto}, a)
}

// usual is where a default is among the others. One that isn't written asks, but not for
// tools that only read inside the worker.
func usual(a *workshop.Approvals) (place int) {
	if isWritten(a) {
		return 2 * level(a.Default.V)
	}
	return 2*level(workshop.ApprovalAsk) + 1
}

func isWritten(a *workshop.Approvals) bool {
	return a.Default.Source.Range.Filename != "" || a.Default.V != workshop.ApprovalAsk
}

// defaultOf are the lowest and the highest level of what the default says of a tool's
// calls.
func defaultOf(a *workshop.Approvals, name string) (low, high int) {
	if isWritten(a) {
		return level(a.Default.V), level(a.Default.V)
	}
	ask, auto := level(workshop.ApprovalAsk), level(workshop.ApprovalAuto)
	if name == callrule.Any {
		return ask, auto
	}
	if s, ok := tool.Find(name); ok && s.ReadOnly && !s.OpenWorld {
		return auto, auto
	}
	return ask, ask
}

// ofWorkshop compares what all workers share.
func (p *pair) ofWorkshop() []Row {
	rows := slices.Concat(p.approvals(), p.opened(), p.models())
	a, b := p.base.Workshop.Isolation, p.head.Workshop.Isolation
	if a.V != b.V && a.V != "" {
		rows = append(rows, Row{State: Changed, Surface: "isolation", Before: string(a.V), After: string(b.V), At: fileOr(b.Source, p.head), Was: fileOr(a.Source, p.base)})
	}
	return rows
}

// models compares the model servers by their names.
func (p *pair) models() (rows []Row) {
	b, h := p.base.Workshop.Models, p.head.Workshop.Models
	named := func(list []workshop.ModelService, name string) *workshop.ModelService {
		if i := slices.IndexFunc(list, func(s workshop.ModelService) bool { return s.Name == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	for i := range h {
		now, was := &h[i], named(b, h[i].Name)
		switch {
		case was == nil:
			rows = append(rows, Row{State: Widened, Surface: "models", After: grant.ModelText(now), At: now.At.Range})
		case grant.ModelText(was) != grant.ModelText(now):
			state := Changed
			if strings.Contains(grant.ModelText(was)+grant.ModelText(now), "${") {
				state = Unknown
			}
			rows = append(rows, Row{State: state, Surface: "models", Before: grant.ModelText(was), After: grant.ModelText(now), At: now.At.Range, Was: was.At.Range})
		}
	}
	for i := range b {
		if named(h, b[i].Name) == nil {
			rows = append(rows, Row{State: Narrowed, Surface: "models", Before: grant.ModelText(&b[i]), At: diag.Range{Filename: p.head.Workshop.File}, Was: b[i].At.Range})
		}
	}
	return rows
}

// opened compares what projects that extend the workshop may add: each line by itself.
func (p *pair) opened() []Row {
	var rows []Row
	lines := func(state State, of, other *Side) {
		for _, o := range of.Workshop.Open {
			if slices.ContainsFunc(other.Workshop.Open, func(x workshop.Opened) bool { return x.Text == o.Text }) {
				continue
			}
			if state == Widened {
				rows = append(rows, Row{State: state, Surface: "open", After: o.Text, At: o.At})
			} else {
				rows = append(rows, Row{State: state, Surface: "open", Before: o.Text, At: diag.Range{Filename: p.head.Workshop.File}, Was: o.At})
			}
		}
	}
	lines(Widened, p.head, p.base)
	lines(Narrowed, p.base, p.head)
	return rows
}

// fileOr is a place, or the workshop's file.
func fileOr(s diag.Source, side *Side) diag.Range {
	if s.Range.Filename != "" {
		return s.Range
	}
	return diag.Range{Filename: side.Workshop.File}
}

// approvals compares which calls a person must agree to: the default, and the rules, of
// which the first that matches decides. A rule that is new, or gone, is judged by what
// the rules behind it and the default may say of its calls.
func (p *pair) approvals() []Row {
	var rows []Row
	a, b := &p.base.Workshop.Approvals, &p.head.Workshop.Approvals
	was, is := fileOr(a.Default.Source, p.base), fileOr(b.Default.Source, p.head)
	if state := stateOfLevels(usual(a), usual(b)); state != "" {
		rows = append(rows, Row{State: state, Surface: "approvals", Before: grant.DefaultText(a), After: grant.DefaultText(b), At: is, Was: was})
	}
	if len(a.Rules) > maxRules || len(b.Rules) > maxRules {
		if !slices.Equal(a.Rules, b.Rules) {
			rows = append(rows, Row{State: Unknown, Surface: "approvals", Before: "many rules", After: "many rules, which are not compared", At: is, Was: was})
		}
		return rows
	}
	old, now := ruled(a, b, p.renamed), ruled(b, a, nil)
	defaults := func(tool string) (low, high int) {
		l1, h1 := defaultOf(a, tool)
		l2, h2 := defaultOf(b, tool)
		return min(l1, l2), max(h1, h2)
	}
	align(old, now)
	for i := range now {
		r := &now[i]
		if r.kept {
			continue
		}
		if g := replaced(r, old); g != nil {
			g.kept = true // told with this one
			state := stateOfLevels(level(g.approval), level(r.approval))
			after := r.text()
			if state != Widened && raises(g, r, now) {
				state, after = Unknown, after+", at another place"
			}
			if state == "" { // at another place, and no call is decided higher
				state, after = Narrowed, after+", at another place"
			}
			rows = append(rows, Row{State: state, Surface: "approvals", Before: g.text(), After: after, At: r.at, Was: g.at})
			continue
		}
		low, high := decided(*r, now, old, i, defaults)
		if state := stateOfRange(low, high, level(r.approval), true); state != "" {
			rows = append(rows, Row{State: state, Surface: "approvals", After: r.text(), At: r.at, Was: was})
		}
	}
	for i, g := range old {
		if g.kept {
			continue
		}
		low, high := decided(g, old, now, i, defaults)
		if state := stateOfRange(low, high, level(g.approval), false); state != "" {
			rows = append(rows, Row{State: state, Surface: "approvals", Before: g.text(), At: is, Was: g.at})
		}
	}
	return rows
}

// raises reports whether a rule that is at another place may decide more than others
// did there, or others more than it did.
func raises(g, r *ruling, all []ruling) bool {
	for i := range all {
		c := &all[i]
		if !c.kept || !c.meets(*r) || c.gap < min(g.gap, r.gap) || c.gap >= max(g.gap, r.gap) {
			continue
		}
		if r.gap < g.gap && level(r.approval) > level(c.approval) || r.gap > g.gap && level(c.approval) > level(g.approval) {
			return true
		}
	}
	return false
}

// replaced is the rule about the same calls that is gone.
func replaced(r *ruling, old []ruling) *ruling {
	for i := range old {
		if g := &old[i]; !g.kept && g.tool == r.tool && g.match == r.match {
			return g
		}
	}
	return nil
}

// decided are the lowest and the highest level of what the rules behind one, those of
// the other side that don't come before it, and the defaults say of its calls.
func decided(r ruling, own, other []ruling, at int, defaults func(tool string) (low, high int)) (low, high int) {
	low, high = defaults(r.tool)
	before := func(o ruling) bool {
		return slices.ContainsFunc(own[:at], func(x ruling) bool { return x.same(o) })
	}
	for _, o := range slices.Concat(own[at+1:], slices.DeleteFunc(slices.Clone(other), before)) {
		if o.meets(r) {
			low, high = min(low, level(o.approval)), max(high, level(o.approval))
		}
	}
	return low, high
}

// maxRules bounds the rules that are compared one by one.
const maxRules = 500

func stateOfLevels(before, after int) State {
	switch {
	case after > before:
		return Widened
	case after < before:
		return Narrowed
	}
	return ""
}

// stateOfRange is the state of a rule of a level that is new, or gone, where the rules
// behind it decide from low to high.
func stateOfRange(low, high, own int, added bool) State {
	from, to := own, own // gone: from the rule to what is behind it
	if added {
		from, to = low, own
		if own <= low && own < high {
			return Narrowed
		}
	} else {
		to = high
		if own >= high && own > low {
			return Narrowed
		}
	}
	return stateOfLevels(from, to)
}

// ruling is a rule of approvals.
type ruling struct {
	tool, match string
	approval    workshop.Approval
	at          diag.Range
	kept        bool // the other side has it, at the same place among those that both have
	gap         int  // number of kept ones before it
}

func (r ruling) text() string { return grant.DecisionText(r.tool, r.match, r.approval) }

func (r ruling) same(o ruling) bool {
	return r.tool == o.tool && r.match == o.match && r.approval == o.approval
}

// meets reports whether two rules can be about one call, as far as their tools tell.
func (r ruling) meets(o ruling) bool {
	if r.tool == callrule.Any || o.tool == callrule.Any || r.tool == o.tool {
		return true
	}
	a, one, ok := tool.SplitMCP(r.tool)
	b, other, also := tool.SplitMCP(o.tool)
	return ok && also && a == b && (one == "" || other == "" || one == other)
}

// covers reports whether every call of the other rule is one of this.
func (r ruling) covers(o ruling) bool {
	if r.match != "" && r.match != o.match {
		return false
	}
	if r.tool == callrule.Any || r.tool == o.tool {
		return true
	}
	a, one, ok := tool.SplitMCP(r.tool)
	b, _, also := tool.SplitMCP(o.tool)
	return ok && also && a == b && one == ""
}

// ruled are the rules that decide something, in an order that doesn't depend on how
// those are written that are about other calls.
func ruled(a, other *workshop.Approvals, renamed map[string]string) []ruling {
	var all []ruling
	for _, r := range a.Rules {
		x := ruling{tool: r.Tool, match: r.Match, approval: r.Approval, at: r.At.Range}
		if name, ok := strings.CutPrefix(x.tool, callrule.DelegatePrefix); ok && renamed[name] != "" {
			x.tool = callrule.DelegatePrefix + renamed[name]
		}
		if !slices.ContainsFunc(all, func(o ruling) bool { return o.covers(x) }) {
			all = append(all, x)
		}
	}
	for i := len(all) - 1; i >= 0; i-- { // what says the same as all that is behind it
		x := all[i]
		if slices.ContainsFunc(other.Rules, func(o workshop.ApprovalRule) bool { return o.Tool == x.tool && o.Match == x.match }) {
			continue // to be compared with that
		}
		low, high := defaultOf(a, x.tool)
		low2, high2 := defaultOf(other, x.tool)
		if own := level(x.approval); min(low, low2) == own && max(high, high2) == own && !slices.ContainsFunc(all[i+1:], func(o ruling) bool { return o.meets(x) && o.approval != x.approval }) {
			all = slices.Delete(all, i, i+1)
		}
	}
	var out []ruling
	for len(all) > 0 { // the smallest that nothing has to be before
		next := 0
		for i := range all {
			free := !slices.ContainsFunc(all[:i], func(o ruling) bool { return o.meets(all[i]) && o.approval != all[i].approval })
			if free && strings.Compare(all[i].text(), all[next].text()) < 0 {
				next = i
			}
		}
		out = append(out, all[next])
		all = slices.Delete(all, next, next+1)
	}
	return out
}

// align marks a longest list of rules that both have in this order.
func align(a, b []ruling) {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i].same(b[j]) {
				n[i][j] = n[i+1][j+1] + 1
			} else {
				n[i][j] = max(n[i+1][j], n[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].same(b[j]):
			a[i].kept, b[j].kept = true, true
			i, j = i+1, j+1
		case n[i+1][j] >= n[i][j+1]:
			i++
		default:
			j++
		}
	}
	for _, list := range [][]ruling{a, b} {
		kept := 0
		for i := range list {
			if list[i].gap = kept; list[i].kept {
				kept++
			}
		}
	}
}
