package diff

import (
	"context"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/workshop"
)

// pair is one worker of both sides, or the workshops themselves.
type pair struct {
	base, head *Side
	old, new   *workshop.Worker
	workers    []string          // of head
	renamed    map[string]string // workers of base whose name is another one in head
}

// Compare returns what head grants beyond base, and what else differs. Its error is
// that of comparisons that are too many.
func Compare(ctx context.Context, base, head Side) ([]Row, error) {
	rows := guards(&base, &head)
	switch {
	case head.Workshop == nil && base.Workshop == nil:
		return sorted(rows), nil
	case head.Workshop == nil:
		rows = append(rows, Row{State: Widened, Surface: "workshop", Before: base.Workshop.File, Was: diag.Range{Filename: base.Workshop.File}})
		return sorted(rows), nil
	case base.Workshop == nil:
		base.Workshop = &workshop.Workshop{File: head.Workshop.File, Symbolic: true, Name: head.Workshop.Name,
			Approvals: workshop.Approvals{Default: workshop.Value[workshop.Approval]{V: workshop.ApprovalDeny}}}
		rows = append(rows, Row{State: Widened, Surface: "workshop", After: head.Workshop.File, At: diag.Range{Filename: head.Workshop.File}})
	}
	c := workshop.NewComparer(ctx, true)
	b, h := base.Workshop, head.Workshop
	renamed := renames(c, &base, &head)
	for i := range h.Workers {
		k := &h.Workers[i]
		p := pair{base: &base, head: &head, new: k, old: find(b, originalName(renamed, k.Name)), workers: []string{k.Name}, renamed: renamed}
		if p.old == nil {
			rows = append(rows, Row{State: Widened, Workers: p.workers, Surface: "worker", After: grants(k), At: k.Source.Range})
			continue
		}
		rows = append(rows, p.rows(c)...)
	}
	for i := range b.Workers {
		k := &b.Workers[i]
		if _, is := renamed[k.Name]; !is && find(h, k.Name) == nil {
			rows = append(rows, Row{State: Narrowed, Workers: []string{k.Name}, Surface: "worker", Before: grants(k), Was: k.Source.Range, At: diag.Range{Filename: h.File}})
		}
	}
	p := pair{base: &base, head: &head, renamed: renamed}
	rows = append(rows, p.ofWorkshop()...)
	return sorted(rows), c.Err()
}

// Within returns what head's workers grant beyond an organisation's boundary: what the
// container of a workshop grants, and its approvals.
func Within(ctx context.Context, boundary, head Side) ([]Row, error) {
	c := workshop.NewComparer(ctx, true)
	var rows []Row
	for i := range head.Workshop.Workers {
		k := &head.Workshop.Workers[i]
		p := pair{base: &boundary, head: &head, new: k, old: &workshop.Worker{Container: boundary.Workshop.Container, Source: boundary.Workshop.Container.Network.Source}, workers: []string{k.Name}}
		rows = append(rows, p.contained(c)...)
	}
	p := pair{base: &boundary, head: &head}
	rows = append(rows, p.approvals()...)
	return sorted(slices.DeleteFunc(rows, func(r Row) bool { return r.State == Narrowed || r.State == Changed })), c.Err()
}

// rows are all differences of a worker.
func (p *pair) rows(c *workshop.Comparer) []Row {
	rows := p.contained(c)
	for _, s := range surfaces {
		if s.of != nil {
			rows = append(rows, p.values(s)...)
		}
	}
	return slices.Concat(rows, p.moved(), p.tools(), p.servers(), p.delegates())
}

// contained compares what containment decides, in both directions.
func (p *pair) contained(c *workshop.Comparer) []Row {
	var rows []Row
	more := joined(c.Excess(&p.new.Container, &p.old.Container))
	for _, x := range more {
		state := Widened
		if x.Unknown {
			state = Unknown
		}
		have, granted := words(x)
		rows = append(rows, p.row(state, x.Key, granted, have, x.At, x.Grant))
	}
	for _, x := range joined(c.Excess(&p.old.Container, &p.new.Container)) {
		if slices.ContainsFunc(more, func(m workshop.Excess) bool { return x.Unknown && m.Unknown && m.Key == x.Key && m.Grant == x.At }) {
			continue // told already
		}
		have, granted := words(x)
		rows = append(rows, p.row(Narrowed, x.Key, have, granted, x.Grant, x.At))
	}
	return rows
}

// joined makes one of the lines that are of one line of the file, as those of a preset.
func joined(list []workshop.Excess) (out []workshop.Excess) {
	for _, x := range list {
		i := slices.IndexFunc(out, func(o workshop.Excess) bool {
			return o.Key == "network.allow" && o.Key == x.Key && o.At == x.At && x.At.Start.Line > 0 && o.Unknown == x.Unknown
		})
		if i < 0 {
			out = append(out, x)
			continue
		}
		have, _ := words(x)
		out[i].Have = strings.TrimPrefix(out[i].Have+"; "+have, "; ")
	}
	return out
}

// words are what an excess is about, in the words of a lock.
func words(x workshop.Excess) (have, granted string) {
	side := func(part workshop.Part, more, sep string) string {
		text := grant.PartText(part, grant.Symbols)
		if text == "" || more == "" {
			return text + more
		}
		return text + sep + more
	}
	sep := ", "
	if x.Key == "network.allow" {
		sep = "; "
	}
	return side(x.HaveOf, x.Have, sep), side(x.GrantedOf, x.Granted, " ")
}

// row makes a row of the worker. What has no place is a default, or gone: then its place
// is where it would be.
func (p *pair) row(s State, surface, before, after string, at, was diag.Range) Row {
	at, was = placeOr(at, surface, p.new), placeOr(was, surface, p.old)
	return Row{State: s, Workers: p.workers, Surface: surface, Before: before, After: after, At: at, Was: was}
}

func placeOr(at diag.Range, surface string, k *workshop.Worker) diag.Range {
	switch {
	case at.Filename != "":
		return at
	case slices.Contains([]string{"tools", "delegates-to", "description", "instructions", "model", "result_type"}, surface):
		return k.Definition.Source.Range
	case slices.Contains([]string{"secrets", "caches", "ports"}, surface):
		return k.Source.Range // each worker has its own
	}
	at = k.Container.Source.Range
	at.End = at.Start
	return at
}

func find(w *workshop.Workshop, name string) *workshop.Worker {
	if i := slices.IndexFunc(w.Workers, func(k workshop.Worker) bool { return k.Name == name }); i >= 0 {
		return &w.Workers[i]
	}
	return nil
}

// originalName is the name in base of a worker of head.
func originalName(renamed map[string]string, name string) string {
	for old, now := range renamed {
		if now == name {
			return old
		}
	}
	return name
}

// nameNow is the name in head of a worker of base.
func (p *pair) nameNow(name string) string {
	if now, ok := p.renamed[name]; ok {
		return now
	}
	return name
}

// renames pairs workers that have another name in head, and are the same else.
func renames(c *workshop.Comparer, base, head *Side) map[string]string {
	out := map[string]string{}
	taken := map[string]bool{}
	for i := range base.Workshop.Workers {
		old := &base.Workshop.Workers[i]
		if find(head.Workshop, old.Name) != nil {
			continue
		}
		for j := range head.Workshop.Workers {
			k := &head.Workshop.Workers[j]
			if taken[k.Name] || find(base.Workshop, k.Name) != nil {
				continue
			}
			if p := (pair{base: base, head: head, old: old, new: k, renamed: out}); len(p.rows(c)) == 0 {
				out[old.Name], taken[k.Name] = k.Name, true
				break
			}
		}
	}
	return out
}
