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

// presetOf is the preset that a name is part of; empty for none.
func presetOf(name firewall.Name) string {
	if list := presetsByName()[name.String()]; len(list) > 0 {
		return list[0].Name
	}
	return ""
}
