package engine

import (
	"fmt"
	"slices"
	"strings"
)

// Difference is a setting of a container that isn't what was asked of the engine.
type Difference struct {
	Promise string // "B5"
	Field   string // "Memory", "CapDrop"
	Asked   string
	Found   string
}

// String says both sides.
func (d Difference) String() string {
	return fmt.Sprintf("%s: asked %s, found %s", d.Field, orNone(d.Asked), orNone(d.Found))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// RefuseDifferences returns the refusal of a container, nil without a difference. what
// names the container, "worker coder"; do is what to do.
func RefuseDifferences(what string, all []Difference, do string) error {
	if len(all) == 0 {
		return nil
	}
	var promises, lines []string
	for _, d := range all {
		promises = append(promises, d.Promise)
	}
	slices.Sort(promises)
	promises = slices.Compact(promises)
	for _, d := range all {
		line := d.String()
		if len(promises) > 1 {
			line = d.Promise + " " + line
		}
		lines = append(lines, line)
	}
	return &RefusedError{Promise: strings.Join(promises, ", "), Reason: what + " isn't what was asked of the engine: " + strings.Join(lines, "; "), Do: do}
}
