package app

import (
	"maps"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/promise"
)

// Reach is what the workers of a workshop may reach together, by their last `up`.
type Reach struct {
	// Mode is the widest of the workers; empty: not known. In process mode it is the
	// machine's.
	Mode string `json:"mode,omitempty"`
	// Names are the lines of allow that aren't presets; only in restricted mode.
	Names   int      `json:"names,omitempty"`
	Presets []string `json:"presets,omitempty"`
}

// machinesNetwork is the mode of workers that nothing contains.
const machinesNetwork = "this machine's"

// String is "restricted: 4 names, npm".
func (r Reach) String() string {
	var parts []string
	if r.Names > 0 {
		parts = append(parts, Count(r.Names, "name"))
	}
	parts = append(parts, r.Presets...)
	switch {
	case r.Mode != firewall.Restricted.String():
		return r.Mode
	case len(parts) == 0:
		return r.Mode + ": nothing"
	}
	return r.Mode + ": " + strings.Join(parts, ", ")
}

// reachOf takes what is granted from the record: of the engine's objects only the mode
// none can be seen.
func reachOf(l onEngine, r *facts.Record) (out Reach) {
	if l.engine == promise.Process {
		return Reach{Mode: machinesNetwork}
	}
	var granted map[string]facts.Grant
	if r != nil {
		granted = r.Granted
	}
	lines := map[string]bool{}
	widest := -1
	for _, c := range l.Containers {
		if c.Role != compose.RoleWorker.String() {
			continue
		}
		g, known := granted[c.Service]
		mode, err := firewall.ParseMode(g[modeFacet])
		switch {
		case c.NetworkOf == "":
			mode = firewall.None
		case !known || err != nil:
			return Reach{}
		}
		widest = max(widest, int(mode))
		for key := range g {
			if text, ok := strings.CutPrefix(key, lineFacet+" allow "); ok && mode == firewall.Restricted {
				lines[text] = true
			}
		}
	}
	if widest < 0 {
		return Reach{}
	}
	out.Mode = firewall.Mode(widest).String()
	if firewall.Mode(widest) != firewall.Restricted {
		return out
	}
	for _, text := range slices.Sorted(maps.Keys(lines)) {
		if preset, ok := strings.CutPrefix(text, "preset "); ok {
			preset, _, _ = strings.Cut(preset, " ") // without its budget
			out.Presets = append(out.Presets, Printable(preset))
		} else {
			out.Names++
		}
	}
	return out
}
