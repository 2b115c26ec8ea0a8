package promise

import (
	"fmt"
	"slices"
	"strings"
)

//go:generate go run ../dev/docgen ../../docs/security.md

//go:generate go run ../dev/docgen ../../docs/engines.md

// Document returns the text of docs/security.md with its list made anew.
func Document(doc string) (string, error) { return replace(doc, "promises", list()) }

// EnginesDocument returns the text of docs/engines.md with its table made anew.
func EnginesDocument(doc string) (string, error) { return replace(doc, "engines", table()) }

// replace replaces what is between two markers of a document.
func replace(doc, name, text string) (string, error) {
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
	before, rest, ok1 := strings.Cut(doc, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("no markers %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + text + end + after, nil
}

func list() string {
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
	return b.String()
}

// table has a row for each promise and a column for each engine that holds them all, and for
// kernels of a worker's own. A cell that is the default engine's says "same", of another "as" that.
func table() string {
	engines := slices.DeleteFunc(Kinds(), func(e string) bool { return len(Waived(e)) > 0 })
	var b strings.Builder
	fmt.Fprintf(&b, "\n| | %s | shown by |\n|%s\n", strings.Join(engines, " | "), strings.Repeat("---|", len(engines)+2))
	for _, p := range All() {
		cells, texts := make([]string, len(engines)), make([]string, len(engines))
		for i, e := range engines {
			texts[i] = Of(e, p.ID).Text()
			switch j := slices.Index(texts[:i], texts[i]); {
			case j < 0:
				cells[i] = texts[i]
			case j == 0:
				cells[i] = "same"
			default:
				cells[i] = "as " + engines[j]
			}
		}
		var tests []string
		for _, t := range Tests(p.ID) {
			tests = append(tests, "`"+t+"`")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.ID, strings.Join(cells, " | "), strings.Join(tests, ", "))
	}
	b.WriteString("\n")
	return b.String()
}
