package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// Difference is a setting of a container that isn't what was asked of the engine.
type Difference struct {
	Promise string // "B5"; empty: none is concerned
	Field   string // "Memory", "CapDrop"
	Asked   string
	Found   string
}

// maxDifference is how long each side may be in a message, in bytes.
const maxDifference = 300

// String says both sides.
func (d Difference) String() string {
	side := func(s string) string { return diagtext.Printable(clip.Text(cmp.Or(s, "none"), maxDifference)) }
	return fmt.Sprintf("%s: asked %s, found %s", d.Field, side(d.Asked), side(d.Found))
}

// RefuseDifferences returns the refusal of a container, nil without a difference. what
// names the container, "worker coder"; do is what to do.
func RefuseDifferences(what string, all []Difference, do string) error {
	if len(all) == 0 {
		return nil
	}
	var promises, lines []string
	for _, d := range all {
		if d.Promise != "" { // such as a label, by which the container is found
			promises = append(promises, d.Promise)
		}
	}
	slices.Sort(promises)
	promises = slices.Compact(promises)
	for _, d := range all {
		line := d.String()
		if len(promises) > 1 {
			line = strings.TrimSpace(d.Promise + " " + line)
		}
		lines = append(lines, line)
	}
	return &RefusedError{Promise: strings.Join(promises, ", "), Reason: what + " isn't what was asked of the engine: " + strings.Join(lines, "; "), Do: do}
}
