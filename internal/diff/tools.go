package diff

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/worker"
)

// tools compares what a worker is offered (B41).
func (p *pair) tools() []Row {
	rows := p.offers(p.new, p.old, func(after, before string, at, was diag.Range) Row {
		return p.row(Widened, "tools", before, after, at, was)
	})
	return append(rows, p.offers(p.old, p.new, func(before, after string, was, at diag.Range) Row {
		return p.row(Narrowed, "tools", before, after, at, was)
	})...)
}

// offers are the tools of one that the other isn't offered, each line of a file once.
func (p *pair) offers(inner, outer *workshop.Worker, row func(have, granted string, at, grant diag.Range) Row) (rows []Row) {
	var places []diag.Range
	texts, granted := map[diag.Range][]string{}, map[diag.Range][]string{}
	nearest := map[diag.Range]diag.Range{}
	for _, o := range tool.Excess(inner.Definition.Offers(), outer.Definition.Offers()) {
		i := slices.IndexFunc(inner.Definition.Tools, func(t worker.Tool) bool { return t.Name == o.Name && t.Pattern == o.Limit })
		t := inner.Definition.Tools[i]
		at, text := t.Source.Range, grant.ToolText(t)
		if server, _, ok := tool.SplitMCP(t.Name); ok {
			mine, its := p.serversOf(inner), p.serversOf(outer)
			if s := serverOf(mine, server); s != nil {
				text += " (runs " + grant.CommandText(s) + ")"
				if serverOf(its, server) == nil {
					at = s.At.Range // it wasn't there
				}
			}
		}
		if texts[at] == nil {
			places = append(places, at)
		}
		texts[at] = appendNew(texts[at], text)
		for _, h := range outer.Definition.Tools {
			if h.Name == t.Name {
				granted[at] = appendNew(granted[at], grant.ToolText(h))
				if nearest[at].Filename == "" {
					nearest[at] = h.Source.Range
				}
			}
		}
	}
	for _, at := range places {
		rows = append(rows, row(strings.Join(texts[at], ", "), strings.Join(granted[at], ", "), at, nearest[at]))
	}
	return rows
}

func appendNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// serversOf are the MCP servers of the side of a worker.
func (p *pair) serversOf(k *workshop.Worker) []workshop.MCPServer {
	if k == p.new {
		return p.head.Workshop.MCP
	}
	return p.base.Workshop.MCP
}

func serverOf(list []workshop.MCPServer, name string) *workshop.MCPServer {
	if i := slices.IndexFunc(list, func(s workshop.MCPServer) bool { return s.Name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

// servers compares the MCP servers whose tools a worker is offered on both sides. One
// that is new is told with its tools.
func (p *pair) servers() (rows []Row) {
	told := map[string]bool{}
	for _, t := range p.new.Definition.Tools {
		name, _, ok := tool.SplitMCP(t.Name)
		if !ok || told[name] || !slices.ContainsFunc(p.old.Definition.Tools, func(o worker.Tool) bool {
			server, _, ok := tool.SplitMCP(o.Name)
			return ok && server == name
		}) {
			continue
		}
		told[name] = true
		a, b := serverOf(p.base.Workshop.MCP, name), serverOf(p.head.Workshop.MCP, name)
		if a == nil || b == nil {
			continue
		}
		if was, is := grant.ServerText(a), grant.ServerText(b); was != is {
			rows = append(rows, p.row(Changed, "mcp", was, is, b.At.Range, a.At.Range))
		}
	}
	return rows
}

// delegates compares whom a worker may call.
func (p *pair) delegates() (rows []Row) {
	for _, ref := range p.new.Definition.DelegatesTo {
		if !slices.ContainsFunc(p.old.Definition.DelegatesTo, func(o worker.Reference) bool { return p.nameNow(o.Name) == ref.Name }) {
			rows = append(rows, p.row(Widened, "delegates-to", "", ref.Name, ref.Source.Range, diag.Range{}))
		}
	}
	for _, ref := range p.old.Definition.DelegatesTo {
		if !slices.ContainsFunc(p.new.Definition.DelegatesTo, func(o worker.Reference) bool { return o.Name == p.nameNow(ref.Name) }) {
			rows = append(rows, p.row(Narrowed, "delegates-to", ref.Name, "", diag.Range{}, ref.Source.Range))
		}
	}
	return rows
}
