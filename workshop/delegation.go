package workshop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop/worker"
)

// delegations resolves the names that workers delegate to, and checks that
// nobody delegates in a circle or to somebody who reaches more (B40).
//
// A caller gets what its delegate finds out, and the delegate does what the
// caller says. So a delegate must reach no more than its caller:
//
//	network   mode not higher; every allowed line covered by the caller's; what the caller denies is denied
//	mounts    every source equal to or below one of the caller's, not more writable, nothing excluded there visible here
//	secrets   only those that the caller has
//	tools     only those that the caller is offered, within their limits
//
// The rest gives a caller nothing: limits hold for each container and are at
// most the workshop's; image, user and env decide how a delegate works, not
// what it reaches; ports lead inwards. Since the relation is transitive, each
// edge is checked alone.
func delegations(w *Workshop, work *effort, p *problems) {
	byName := map[string]*Worker{}
	var names []string
	for i := range w.Workers {
		byName[w.Workers[i].Name] = &w.Workers[i]
		names = append(names, w.Workers[i].Name)
	}
	for i := range w.Workers {
		wk := &w.Workers[i]
		wk.Definition.DelegatesTo = append(slices.Clone(wk.Definition.DelegatesTo), toolsetWorkers(wk, byName, p)...)
		for _, ref := range wk.Definition.DelegatesTo {
			to := byName[ref.Name]
			if to == nil {
				hint := "workers of this workshop: " + strings.Join(firstOf(names, 10), ", ")
				if !full(p) {
					others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == wk.Name })
					if near := nearest(ref.Name, others); near != "" {
						hint = "did you mean " + near + "?"
					}
				}
				p.add(diag.Diagnostic{Severity: diag.Error, Code: "delegate-unknown", Range: ref.Source.Range,
					Summary: fmt.Sprintf("%s delegates to %s, which is not a worker of this workshop", wk.Name, ref.Name),
					Hint:    hint, Related: []diag.Related{{Message: wk.Name + " is listed here", Range: wk.Source.Range}}})
				continue
			}
			if to != wk {
				delegateExcess(wk, to, ref, work, p)
				delegateTools(wk, to, ref, work, p)
			}
		}
	}
	cycles(w.Workers, byName, p)
}

func firstOf(names []string, most int) []string {
	if len(names) > most {
		return append(slices.Clone(names[:most]), "…")
	}
	return names
}

// toolsetWorkers takes the entries of an llm-do `toolsets` that name workers;
// the others are warned of and stay in Definition.Extra.
func toolsetWorkers(wk *Worker, byName map[string]*Worker, p *problems) []worker.Reference {
	var out []worker.Reference
	for _, ref := range wk.Definition.Toolsets {
		if byName[ref.Name] != nil {
			if !slices.ContainsFunc(wk.Definition.DelegatesTo, func(o worker.Reference) bool { return o.Name == ref.Name }) {
				out = append(out, ref)
			}
			continue
		}
		name := ref.Name
		if as := wk.Import(); as != "" {
			name = strings.TrimPrefix(name, as+importMark)
		}
		p.add(diag.Diagnostic{Severity: diag.Warning, Code: "worker-unknown-tool", Range: ref.Source.Range,
			Summary: fmt.Sprintf("%q is neither a toolset nor a worker of this workshop, it isn't offered", name),
			Hint:    fmt.Sprintf("add `- %s` to the workers if it is one; tools written in Python aren't taken over", name)})
	}
	return out
}

// delegateExcess reports what a delegate reaches and its caller doesn't.
func delegateExcess(caller, to *Worker, ref worker.Reference, work *effort, p *problems) {
	if p.errors > 0 && full(p) {
		return
	}
	c, d := caller.Container, to.Container
	found := slices.Concat(networkExcess(d.Network, c.Network, work), mountsExcess(d.Mounts, c.Mounts, work), secretsExcess(d.Secrets, c.Secrets, work))
	for _, x := range decided(found) {
		related := []diag.Related{}
		if x.at.Filename != "" {
			related = append(related, diag.Related{Message: to.Name + " has", Range: x.at})
		}
		grant := x.grant
		if grant.Filename == "" {
			grant = caller.Source.Range
		}
		related = append(related, diag.Related{Message: caller.Name + " has", Range: grant})
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "delegate-widening", Range: ref.Source.Range,
			Summary: fmt.Sprintf("%s delegates to %s, which reaches more: %s", caller.Name, to.Name, delegateWhat(x, d, c)),
			Detail:  "A caller gets what its delegate finds out, so a delegate may reach only what its caller reaches.",
			Hint:    fmt.Sprintf("narrow %s in the container of %s, or give it to %s as well", x.key, to.Name, caller.Name),
			Related: related})
	}
}

// delegateTools reports the tools of a delegate that its caller isn't offered,
// or only with a narrower limit.
func delegateTools(caller, to *Worker, ref worker.Reference, work *effort, p *problems) {
	if p.errors > 0 && full(p) || !work.spend(len(caller.Definition.Tools)*len(to.Definition.Tools)) {
		return
	}
	var told diag.Range
	for _, o := range tool.Excess(to.Definition.Offers(), caller.Definition.Offers()) {
		at := slices.IndexFunc(to.Definition.Tools, func(t worker.Tool) bool { return t.Name == o.Name && t.Pattern == o.Limit })
		t := to.Definition.Tools[at]
		if told == t.Source.Range {
			continue // another tool of the same toolset
		}
		told = t.Source.Range
		grant := caller.Source.Range
		if has := slices.IndexFunc(caller.Definition.Tools, func(h worker.Tool) bool { return h.Name == t.Name }); has >= 0 {
			grant = caller.Definition.Tools[has].Source.Range
		}
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "delegate-widening", Range: ref.Source.Range,
			Summary: fmt.Sprintf("%s delegates to %s, which has a tool that it lacks: %s", caller.Name, to.Name, t.Written),
			Detail:  "The delegate does what its caller says, so it may have only tools that its caller has.",
			Hint:    fmt.Sprintf("add %s to the tools of %s, or take it from those of %s", t.Written, caller.Name, to.Name),
			Related: []diag.Related{{Message: to.Name + " has", Range: t.Source.Range}, {Message: caller.Name + " has", Range: grant}}})
	}
}

// delegateWhat says an excess in words that fit between two workers.
func delegateWhat(x excess, d, c Container) string {
	switch x.key {
	case "network.mode":
		return fmt.Sprintf("network %s against %s", d.Network.Mode.V, c.Network.Mode.V)
	case "network.deny":
		return x.summary
	case "network.allow":
		return strings.TrimSuffix(x.summary, " is not covered by a line of the workshop's allow")
	case "network.agents":
		return x.haveOf.Agent.String()
	case "secrets":
		return "the secret " + strings.TrimPrefix(x.summary, "the workshop has no secret ")
	}
	return strings.NewReplacer("the workshop's mounts", "the caller's mounts", "the workshop's mount", "the caller's mount", "in the workshop", "in the caller", "the workshop mounts", "the caller mounts").Replace(x.summary)
}

// cycles reports every circle of delegations once, at the reference that
// closes it.
func cycles(workers []Worker, byName map[string]*Worker, p *problems) {
	const (
		onPath = 1
		done   = 2
	)
	state := map[string]int{}
	var path []worker.Reference // how the walk came to where it is
	var visit func(wk *Worker)
	visit = func(wk *Worker) {
		state[wk.Name] = onPath
		for _, ref := range wk.Definition.DelegatesTo {
			next := byName[ref.Name]
			if next == nil || state[ref.Name] == done {
				continue
			}
			path = append(path, ref)
			if state[ref.Name] == onPath {
				p.add(cycle(path, byName))
			} else {
				visit(next)
			}
			path = path[:len(path)-1]
		}
		state[wk.Name] = done
	}
	for i := range workers {
		if state[workers[i].Name] == 0 {
			path = append(path[:0], worker.Reference{Name: workers[i].Name})
			visit(&workers[i])
		}
	}
}

// cycle reports the circle at the end of a path.
func cycle(path []worker.Reference, byName map[string]*Worker) diag.Diagnostic {
	last := path[len(path)-1]
	from := slices.IndexFunc(path, func(r worker.Reference) bool { return r.Name == last.Name })
	var names []string
	var related []diag.Related
	for i, r := range path[from:] {
		names = append(names, r.Name)
		if i > 0 && i < len(path)-from-1 {
			related = append(related, diag.Related{Message: "by way of " + r.Name, Range: r.Source.Range})
		}
	}
	return diag.Diagnostic{Severity: diag.Error, Code: "delegate-cycle", Range: last.Source.Range, Related: related,
		Summary: "workers delegate in a cycle: " + strings.Join(names, " → "),
		Hint:    "remove one of the references; a worker gets its delegate's answer, it needs no way back"}
}
