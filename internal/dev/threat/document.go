package threat

import (
	"fmt"
	"slices"
	"strings"
)

// Model returns the text of docs/threat-model.md with its generated parts
// recreated: those between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
func Model(text string) (string, error) {
	text, err := replace(text, "figures", figures())
	if err != nil {
		return "", err
	}
	return replace(text, "catalogue", catalogue())
}

// Matrix is [Model] for docs/threat-matrix.md.
func Matrix(text string) (string, error) { return replace(text, "matrix", matrixTable()) }

// replace puts made between the markers of a part.
func replace(text, part, made string) (string, error) {
	begin, end := "<!-- "+part+": begin -->\n", "<!-- "+part+": end -->\n"
	before, rest, ok1 := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("no markers of the generated part %q", part)
	}
	return before + begin + made + end + after, nil
}

// figures are the numbers in the introduction, and the attacks that are open.
func figures() string {
	var n = map[Status]int{}
	var open []string
	for _, i := range Items() {
		n[i.Status]++
		if i.Status == Open {
			open = append(open, i.ID)
		}
	}
	lines := 0
	for _, c := range Cases() {
		for _, who := range Identities {
			if c.In(Engines, who) || c.In(Bare, who) {
				lines += len(c.Lines)
			}
		}
	}
	return fmt.Sprintf("Of %d attacks %d are gone by construction, %d are closed by a defence, and %d are open, fully or in part: %s. The matrix has %d tries.\n",
		len(Items()), n[Gone], n[Closed], n[Open], strings.Join(open, ", "), lines)
}

// catalogue is a list for each group.
func catalogue() string {
	var b strings.Builder
	for _, g := range Groups {
		fmt.Fprintf(&b, "\n### %s\n\n", g.Title)
		for _, i := range Items() {
			if strings.HasPrefix(i.ID, g.Letter) {
				b.WriteString(i.entry())
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}

// entry is the item as an entry of a list: one line for each of its parts.
func (i Item) entry() string {
	title, details, found := strings.Cut(i.Attack, ": ")
	if found {
		details = ": " + details
	}
	text := fmt.Sprintf("- **%s. %s**%s.\n  *%s* (%s): %s.\n", i.ID, title, details, i.Status, strings.Join(i.Promises, ", "), i.Answer)
	if i.Remedy != "" {
		label := "Remains"
		if i.Status == Open {
			label = "Do"
		}
		text += fmt.Sprintf("  *%s:* %s.\n", label, i.Remedy)
	}
	if len(i.Fell) > 0 {
		text += fmt.Sprintf("  *Seen in:* %s.\n", strings.Join(i.Fell, "; "))
	}
	var evidence []string
	for _, try := range i.Tries() {
		evidence = append(evidence, "`"+try+"`")
	}
	if evidence = append(evidence, byPackage(i.Tests)...); len(evidence) > 0 {
		text += fmt.Sprintf("  *Tests:* %s\n", strings.Join(evidence, ", "))
	}
	return text
}

// byPackage shortens tests: the directory once, then the names.
func byPackage(tests []string) []string {
	var out, dirs []string
	of := map[string][]string{}
	for _, t := range tests {
		dir, name, _ := strings.Cut(t, " ")
		if of[dir] == nil {
			dirs = append(dirs, dir)
		}
		of[dir] = append(of[dir], name)
	}
	for _, dir := range dirs {
		out = append(out, dir+": "+strings.Join(of[dir], ", "))
	}
	return out
}

// matrixTable is a row for each try.
func matrixTable() string {
	var b strings.Builder
	b.WriteString("\n| probe | what is tried | worker, uid 0 | default capabilities | only |\n|---|---|---|---|---|\n")
	for _, t := range Tries() {
		line := "`" + t.Lines[0] + "`"
		if n := len(t.Lines) - 1; n > 0 {
			line = fmt.Sprintf("%s +%d", line, n)
		}
		sees := t.Sees
		if t.Root != "" {
			sees += ", " + t.Root
		}
		other := t.Default
		if t.Who != nil && !slices.Contains(t.Who, Default) {
			other = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", t.ID, cell(line), cell(words(sees)), cell(words(other)), only(t))
	}
	b.WriteString("\n")
	return b.String()
}

// only says where a try is made, if that isn't everywhere.
func only(t Try) string {
	var out []string
	if family := map[Families]string{OnlyV4: "IPv4", OnlyV6: "IPv6"}[t.Families]; family != "" {
		out = append(out, family)
	}
	if t.Place != Anywhere {
		out = append(out, string(t.Place))
	}
	return strings.Join(out, ", ")
}

// words makes alternatives readable.
func words(s string) string {
	s = strings.NewReplacer(cut, "cut off", told, "400, 403 or 421", guardsListeners, "the guard's alone").Replace(s)
	return strings.ReplaceAll(s, "|", " or ")
}

// cell keeps text within a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
