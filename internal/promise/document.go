package promise

import (
	"fmt"
	"strings"
)

//go:generate go run ../dev/docgen ../../docs/engines.md

const (
	beginTable = "<!-- promises: begin -->\n"
	endTable   = "<!-- promises: end -->\n"
)

// Document returns the text of docs/engines.md with its table made anew.
func Document(doc string) (string, error) {
	before, rest, ok1 := strings.Cut(doc, beginTable)
	_, after, ok2 := strings.Cut(rest, endTable)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("no markers %q and %q", strings.TrimSpace(beginTable), strings.TrimSpace(endTable))
	}
	var b strings.Builder
	area := Area("")
	for _, p := range All() {
		if p.Area != area {
			area = p.Area
			fmt.Fprintf(&b, "\n### %s\n\n| | promise | docker | namespace | process |\n|---|---|---|---|---|\n", area)
		}
		fmt.Fprintf(&b, "| %s | %s |", p.ID, p.Title)
		for _, e := range Engines() {
			k := Of(e, p.ID)
			if !k.Held {
				k.How = "**no**"
			}
			fmt.Fprintf(&b, " %s |", k.How)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	return before + beginTable + b.String() + endTable + after, nil
}
