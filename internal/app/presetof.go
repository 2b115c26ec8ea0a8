package app

import (
	"cmp"
	"slices"
	"sync"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
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
		slices.SortStableFunc(list, func(x, y presets.Preset) int { return cmp.Compare(len(x.Rules), len(y.Rules)) })
	}
	return out
})

// presetOf is the preset to write in the place of a name that is connected to with
// ports, nil where they aren't known: the one with the fewest names that has them.
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

// usePresets puts presets in the place of names that they have, as the hints about
// refusals do.
func (out *Suggestions) usePresets() {
	var lines []SuggestedLine
	at := map[string]int{} // of a preset's line
	for _, l := range out.Allow {
		p, ok := presetOf(l.host, l.used)
		if !ok {
			lines = append(lines, l)
			continue
		}
		i, known := at[p.Name]
		if !known {
			i, at[p.Name] = len(lines), len(lines)
			line := SuggestedLine{Line: "preset: " + p.Name, Name: "preset: " + p.Name, Ports: l.Ports, First: l.First, used: l.used}
			for _, r := range p.Rules {
				line.rules = append(line.rules, firewall.Rule{Host: r.Host, Ports: r.Ports, Preset: p.Name})
			}
			lines = append(lines, line)
		}
		line := &lines[i]
		if l.used != nil {
			line.used = l.used
		}
		line.names = slices.Compact(slices.Sorted(slices.Values(append(line.names, l.Name))))
		line.Workers = slices.Compact(slices.Sorted(slices.Values(append(line.Workers, l.Workers...))))
		line.Count += l.Count
		line.Learned, line.Refused = line.Learned || l.Learned, line.Refused || l.Refused
		if l.First.Before(line.First) {
			line.First = l.First
		}
	}
	out.Allow = append([]SuggestedLine{}, lines...)
}

func onePort(port uint16) []firewall.PortRange {
	return []firewall.PortRange{{First: port, Last: port}}
}
