package threat

import (
	"fmt"
	"slices"
	"strings"
)

// Document returns the text of docs/threat-model.md with its generated parts
// made anew: what stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
func Document(text string) (string, error) {
	for _, part := range []struct {
		name string
		make func() string
	}{{"figures", figures}, {"catalogue", catalogue}, {"matrix", matrixTable}} {
		begin, end := "<!-- "+part.name+": begin -->\n", "<!-- "+part.name+": end -->\n"
		before, rest, ok1 := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			return "", fmt.Errorf("no markers of the generated part %q", part.name)
		}
		text = before + begin + part.make() + end + after
	}
	return text, nil
}

// figures are the numbers in the introduction.
func figures() string {
	var n = map[Status]int{}
	for _, i := range Items() {
		n[i.Status]++
	}
	lines := 0
	for _, c := range Cases() {
		for _, who := range Identities {
			if c.In(Engines, who) || c.In(Bare, who) {
				lines += len(c.Lines)
			}
		}
	}
	return fmt.Sprintf("Of %d attacks %d are gone by construction, %d are closed by a defence, %d stay open. The matrix has %d tries.\n",
		len(Items()), n[Gone], n[Closed], n[Open], lines)
}

// catalogue is a table for each group.
func catalogue() string {
	var b strings.Builder
	for _, g := range Groups {
		fmt.Fprintf(&b, "\n### %s\n\n| | attack | who fell to it | our defence | probes and tests |\n|---|---|---|---|---|\n", g.Title)
		for _, i := range Items() {
			if !strings.HasPrefix(i.ID, g.Letter) {
				continue
			}
			answer := fmt.Sprintf("**%s.** %s (%s)", i.Status, i.Answer, strings.Join(i.Promises, ", "))
			switch {
			case i.Remedy == "":
			case i.Status == Open:
				answer += ". *What to do:* " + i.Remedy
			default:
				answer += ". *What remains:* " + i.Remedy
			}
			var evidence []string
			for _, try := range i.Tries() {
				evidence = append(evidence, "`"+try+"`")
			}
			evidence = append(evidence, byPackage(i.Tests)...)
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", i.ID, cell(i.Attack), cell(or(strings.Join(i.Fell, "; "), "–")), cell(answer), or(strings.Join(evidence, ", "), "–"))
		}
	}
	b.WriteString("\n")
	return b.String()
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
	b.WriteString("\n| probe | for | what is tried | worker, uid 0 | default capabilities | where |\n|---|---|---|---|---|---|\n")
	for _, t := range Tries() {
		line := t.Lines[0]
		if n := len(t.Lines) - 1; n > 0 {
			line = fmt.Sprintf("%s` and %d more", line, n)
		} else {
			line += "`"
		}
		sees := t.Sees
		if t.Root != "" {
			sees += ", " + t.Root
		}
		other := or(t.Default, "the same")
		if t.Who != nil && !slices.Contains(t.Who, Default) {
			other = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s | %s | %s | %s |\n", t.ID, strings.ReplaceAll(t.Items, " ", ", "), cell(strings.ReplaceAll(line, "name={name}", "")), cell(words(sees)), cell(words(other)), where(t))
	}
	b.WriteString("\n")
	return b.String()
}

func where(t Try) string {
	families := map[Families]string{Both: "IPv4, IPv6", OnlyV4: "IPv4", OnlyV6: "IPv6"}[t.Families]
	places := or(string(t.Place), "bare, engines")
	if families == "" {
		return places
	}
	return families + "; " + places
}

// words makes alternatives readable.
func words(s string) string {
	s = strings.NewReplacer(cut, "cut off", told, "400, 403 or 421", guardsListeners, "the guard's alone").Replace(s)
	return strings.ReplaceAll(s, "|", " or ")
}

// cell keeps text within a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
