package threat

import (
	"fmt"
	"strings"
)

// Model returns the text of docs/threat-model.md with its generated parts
// recreated: those between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
func Model(text string) (string, error) {
	text, err := replace(text, "figures", figures())
	if err != nil {
		return "", err
	}
	if text, err = replace(text, "untested", untested()); err != nil {
		return "", err
	}
	return replace(text, "catalogue", catalogue())
}

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
	return text
}

// untested are the attacks that no test tries.
func untested() string {
	var ids []string
	for _, i := range Items() {
		if len(i.Tests) == 0 && len(i.Tries()) == 0 {
			ids = append(ids, i.ID)
		}
	}
	return fmt.Sprintf("Each attack but %s has a test; these are open.\n", strings.Join(ids, ", "))
}
