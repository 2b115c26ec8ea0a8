package cli

import (
	"slices"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/guard/events"
)

// askedFor gathers from the guard's events what workers asked for. Names are
// what untrusted code wrote: only what is a [firewall.Name] counts.
type askedFor struct {
	options suggestOptions
	names   map[firewall.Name]*askedName
	out     leftOut
	seen    map[string]bool // what is left out, each once
}

// askedName is one name with the ports that were asked for.
type askedName struct {
	ports  map[uint16]*asking
	lookUp *asking // its addresses were asked for, and refused
}

// asking is how often something was asked for, and by whom.
type asking struct {
	workers          []string
	count            uint64
	first            time.Time
	learned, refused bool
}

func (x *asking) add(l events.Line) *asking {
	if x == nil {
		x = &asking{first: l.Time}
	}
	for _, w := range l.Workers {
		if app.ValidName(w) && !slices.Contains(x.workers, w) {
			x.workers = append(x.workers, w)
		}
	}
	if l.Time.Before(x.first) {
		x.first = l.Time
	}
	x.count += max(1, l.Count)
	x.learned = x.learned || l.Verdict == events.Allow
	x.refused = x.refused || l.Verdict == events.Deny
	return x
}

// add takes one event.
func (a *askedFor) add(_ []byte, l events.Line) error {
	learned := l.Verdict == events.Allow && l.Reason == firewall.ReasonLearned
	refused := a.options.denied && l.Verdict == events.Deny
	if !learned && !refused || a.options.worker != "" && !slices.Contains(l.Workers, a.options.worker) {
		return nil
	}
	name, err := firewall.ParseName(l.Name)
	switch {
	case refused && l.Reason != firewall.ReasonName && l.Reason != firewall.ReasonPort:
		a.leave(&a.out.Other, l)
		return nil
	case err != nil || l.Port == 0 || refused && l.Suggest == "":
		a.leave(&a.out.Nameless, l)
		return nil
	}
	n := a.names[name]
	if n == nil {
		n = &askedName{ports: map[uint16]*asking{}}
		a.names[name] = n
	}
	if l.Kind == events.DNS {
		n.lookUp = n.lookUp.add(l)
	} else {
		n.ports[l.Port] = n.ports[l.Port].add(l)
	}
	return nil
}

// leave counts what is left out, each thing once.
func (a *askedFor) leave(n *int, l events.Line) {
	key := l.Name + "\n" + l.Address + "\n" + l.Reason
	if !a.seen[key] {
		if a.seen == nil {
			a.seen = map[string]bool{}
		}
		a.seen[key] = true
		*n++
	}
}

// suggest makes the lines: 80 and 443 of a name are its bare name, another port
// is a line of its own. A name of which only the addresses were asked for, in
// vain, would have been connected to on some port: most likely these two.
func (a *askedFor) suggest(s *app.Source) suggested {
	out := suggested{Allow: []suggestedLine{}}
	for name, n := range a.names {
		var web *asking
		var ports []firewall.PortRange
		for port, x := range n.ports {
			if port == 80 || port == 443 {
				web = web.join(x)
				ports = append(ports, firewall.PortRange{First: port, Last: port})
			} else {
				a.line(&out, s, name, []firewall.PortRange{{First: port, Last: port}}, x, false)
			}
		}
		if len(n.ports) == 0 {
			web, ports = n.lookUp, firewall.DefaultAllowPorts()
		}
		if web != nil {
			a.line(&out, s, name, firewall.NormalizePorts(ports), web, true)
		}
	}
	out.LeftOut = a.out
	sortLines(out.Allow)
	return out
}

// join is both together.
func (x *asking) join(y *asking) *asking {
	if x == nil {
		return y
	}
	z := *x
	z.workers = slices.Clone(x.workers)
	for _, w := range y.workers {
		if !slices.Contains(z.workers, w) {
			z.workers = append(z.workers, w)
		}
	}
	if y.first.Before(z.first) {
		z.first = y.first
	}
	z.count += y.count
	z.learned, z.refused = z.learned || y.learned, z.refused || y.refused
	return &z
}

// line adds the line for ports of a name, unless the file decides about them
// for all workers that asked.
func (a *askedFor) line(out *suggested, s *app.Source, name firewall.Name, ports []firewall.PortRange, x *asking, bare bool) {
	host, err := firewall.ParseHostPattern(name.String())
	if err != nil {
		a.out.Nameless++
		return
	}
	rule := firewall.Rule{Host: host, Ports: ports}
	known, covered, denied := 0, 0, 0
	for _, worker := range x.workers {
		w := s.Worker(worker)
		if w == nil {
			continue
		}
		known++
		network := &w.Container.Network
		switch {
		case firewall.CoveredBy(rule, filled(network.Deny)):
			denied++
		case network.Mode.V == firewall.Open || firewall.CoveredBy(rule, filled(network.Allow)):
			covered++
		}
	}
	switch {
	case known > 0 && denied == known:
		a.out.Denied++
		return
	case known > 0 && denied+covered == known:
		a.out.Covered++
		return
	}
	asked := firewall.FormatPorts(ports)
	if bare {
		rule.Ports = firewall.DefaultAllowPorts()
	}
	slices.Sort(x.workers)
	out.Allow = append(out.Allow, suggestedLine{
		Line: ruleLine(rule, false), Name: name.String(), Ports: asked, Workers: x.workers,
		Count: x.count, First: x.first, Learned: x.learned, Refused: x.refused, rule: rule,
	})
}
