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
		engines := Engines()
		if p.Area == Container || p.Area == Network { // process mode waives them all
			engines = engines[:2]
		}
		if p.Area != area {
			area = p.Area
			fmt.Fprintf(&b, "\n### %s\n\n| | promise | %s |\n|---|---|%s\n", area, strings.Join(engines, " | "), strings.Repeat("---|", len(engines)))
		}
		fmt.Fprintf(&b, "| %s | %s |", p.ID, p.Title)
		for n, e := range engines {
			how := Of(e, p.ID).How
			if n > 0 && how == Of(engines[n-1], p.ID).How {
				how = "same"
			}
			fmt.Fprintf(&b, " %s |", how)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	return before + beginTable + b.String() + endTable + after, nil
}
