package verify

import (
	"fmt"
	"strings"
)

//go:generate go run ../dev/docgen ../../docs/verify.md

const (
	beginTable = "<!-- methods: begin -->\n"
	endTable   = "<!-- methods: end -->\n"
)

// Document returns the text of docs/verify.md with its table made anew.
func Document(doc string) (string, error) {
	before, rest, ok1 := strings.Cut(doc, beginTable)
	_, after, ok2 := strings.Cut(rest, endTable)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("no markers %q and %q", strings.TrimSpace(beginTable), strings.TrimSpace(endTable))
	}
	var b strings.Builder
	b.WriteString("\n| | promise | how | seen outside | tried inside | the verdict rests on |\n|---|---|---|---|---|---|\n")
	for _, m := range methods {
		var kinds []string
		for _, k := range m.Kinds {
			kinds = append(kinds, string(k))
		}
		rests := m.Rests
		if m.Partly {
			rests = strings.TrimPrefix(rests+"; *in part*", "; ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", m.Promise, titleOf(m.Promise), strings.Join(kinds, ", "), m.Outside, m.Inside, rests)
	}
	b.WriteString("\nOf a worker with a kernel of its own (B13) the same is judged, where it isn't said otherwise:\n\n| | on gVisor | in a virtual machine |\n|---|---|---|\n")
	for _, m := range methods {
		if gvisor, machine := otherwise[m.Promise], inAMachine[m.Promise]; gvisor+machine != "" {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Promise, gvisor, machine)
		}
	}
	b.WriteString("\n")
	return before + beginTable + b.String() + endTable + after, nil
}
