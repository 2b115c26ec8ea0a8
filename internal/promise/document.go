package promise

import (
	"fmt"
	"strings"
)

//go:generate go run ../dev/docgen ../../docs/security.md

const (
	beginList = "<!-- promises: begin -->\n"
	endList   = "<!-- promises: end -->\n"
)

// Document returns the text of docs/security.md with its list made anew.
func Document(doc string) (string, error) {
	before, rest, ok1 := strings.Cut(doc, beginList)
	_, after, ok2 := strings.Cut(rest, endList)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("no markers %q and %q", strings.TrimSpace(beginList), strings.TrimSpace(endList))
	}
	var b strings.Builder
	area := Area("")
	for _, p := range All() {
		if p.Area != area {
			area = p.Area
			fmt.Fprintf(&b, "\n### %s\n\n", area)
		}
		fmt.Fprintf(&b, "- **%s**: %s\n", p.ID, p.Title)
	}
	b.WriteString("\n")
	return before + beginList + b.String() + endList + after, nil
}
