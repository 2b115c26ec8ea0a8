package app

import (
	"cmp"
	"slices"
	"sync"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// presetsByName has the presets that list a name, the one with the fewest names
// first.
var presetsByName = sync.OnceValue(func() map[string][]presets.Preset {
	out := map[string][]presets.Preset{}
	for _, name := range presets.Names() {
		p, _ := presets.Get(name)
		for _, r := range p.Rules {
			host := r.Host.String()
			out[host] = append(out[host], p)
		}
	}
	for _, list := range out {
		sortfunc.Stable(list, func(x, y presets.Preset) int { return cmp.Compare(len(x.Rules), len(y.Rules)) })
	}
	return out
})

// presetOf is the preset to write in the place of a name that is connected to with
// ports: the one with the fewest names that has them.
func presetOf(name firewall.Name, ports []firewall.PortRange) (presets.Preset, bool) {
	for _, p := range presetsByName()[name.String()] {
		if slices.ContainsFunc(p.Rules, func(r presets.Rule) bool {
			return r.Host.String() == name.String() && len(firewall.SubtractPorts(ports, r.Ports)) == 0
		}) {
			return p, true
		}
	}
	return presets.Preset{}, false
}

// presetLine is the line of the preset that is written in the place of a line of a
// name; the line itself where there is none.
func presetLine(line string, name firewall.Name, ports []firewall.PortRange) string {
	if p, ok := presetOf(name, ports); ok && line == name.String() {
		return "preset: " + p.Name
	}
	return line
}

// usePresets puts presets in the place of names that they have, and sorts the lines. A
// name that was only looked up asks for no preset: its port isn't known. A suggested
// preset that has the name includes it.
func (out *Suggestions) usePresets() {
	var lines, lookedUp []SuggestedLine
	at := map[string]int{} // of a preset's line
	for _, l := range out.Allow {
		if l.LookedUp {
			lookedUp = append(lookedUp, l)
			continue
		}
		p, ok := presetOf(l.host, l.used)
		if !ok {
			lines = append(lines, l)
			continue
		}
		i, known := at[p.Name]
		if !known {
			i, at[p.Name] = len(lines), len(lines)
			line := SuggestedLine{Line: "preset: " + p.Name, Name: "preset: " + p.Name, Ports: l.Ports, First: l.First}
			for _, r := range p.Rules {
				line.rules = append(line.rules, firewall.Rule{Host: r.Host, Ports: r.Ports, Preset: p.Name})
			}
			lines = append(lines, line)
		}
		lines[i].add(l)
	}
	for _, l := range lookedUp {
		i := slices.IndexFunc(lines, func(line SuggestedLine) bool { return len(line.names) > 0 && opensName(line.rules, l.host) })
		if i < 0 {
			lines = append(lines, l)
		} else {
			lines[i].add(l)
		}
	}
	sortfunc.Stable(lines, func(a, b SuggestedLine) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(len(a.Line), len(b.Line)), cmp.Compare(a.Line, b.Line))
	})
	out.Allow = append([]SuggestedLine{}, lines...)
}

// add takes a name into the line of a preset.
func (l *SuggestedLine) add(name SuggestedLine) {
	l.names = slices.Compact(slices.Sorted(slices.Values(append(l.names, name.Name))))
	l.Workers = slices.Compact(slices.Sorted(slices.Values(append(l.Workers, name.Workers...))))
	l.Count += name.Count
	l.Learned, l.Refused = l.Learned || name.Learned, l.Refused || name.Refused
	if name.First.Before(l.First) {
		l.First = name.First
	}
}

func onePort(port uint16) []firewall.PortRange {
	return []firewall.PortRange{{First: port, Last: port}}
}
