package workshop

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/diag"
)

// What a hint says to write is valid: in its place it ends the error.
func TestHintsAreValid(t *testing.T) {
	applied := 0
	for name, fsys := range testCases(t, "invalid") {
		data, err := fs.ReadFile(fsys, "workshop.yaml")
		if err != nil {
			continue
		}
		_, before := Load(t.Context(), fsys, "workshop.yaml", testOptions())
		for _, d := range before {
			if d.Severity != diag.Error || d.Range.Filename != "workshop.yaml" {
				continue
			}
			files := applications(data, d)
			if len(files) == 0 {
				continue
			}
			applied++
			if !slices.ContainsFunc(files, func(text string) bool { return ends(t, text, d, before) }) {
				t.Errorf("%s:%s: %s [%s]: pasting what the hint says does not end the error\nhint: %s\none of:\n%s", name, d.Range, d.Summary, d.Code, d.Hint, strings.Join(files, "\n---\n"))
			}
		}
	}
	if applied < 200 {
		t.Errorf("%d hints were pasted, want 200: the hints have another form", applied)
	}
}

// ends reports whether a text has the error no more, and is YAML.
func ends(t *testing.T, text string, d diag.Diagnostic, before diag.List) bool {
	_, after := Load(t.Context(), singleFile([]byte(text)), "workshop.yaml", testOptions())
	of := func(l diag.List) (n int) {
		for _, x := range l {
			if x.Code == "not-yaml" && d.Code != "not-yaml" {
				n += 1000
			}
			if x.Code == d.Code && x.Severity == diag.Error {
				n++
			}
		}
		return n
	}
	return of(after) < of(before)
}

var (
	// placeholder is what nobody pastes.
	placeholder = regexp.MustCompile(`…|\b(NAME|VARIABLE|FILE|DIR|DIRECTORY|PROGRAM|ADDRESS|PORT|BITS|KEY|VALUE|ITEM|WORKER|SOURCE)\b`)
	afterText   = regexp.MustCompile(`^(.*?)(?:; | if | for | with |, with|, without| \(|, or |, and |: a room|$)`)
	didYouMean  = regexp.MustCompile(`^did you mean "([^"]+)"\?`)
	pairText    = regexp.MustCompile(`^([a-z_]+): (.+)$`)
)

// applications are the files in which what the hint says is pasted, one for each
// place that it can be meant for; none for a hint without lines.
func applications(data []byte, d diag.Diagnostic) []string {
	rest, ok := strings.CutPrefix(d.Hint, "write ")
	if near := didYouMean.FindStringSubmatch(d.Hint); near != nil && d.Range.End.Byte > d.Range.Start.Byte {
		return []string{string(data[:d.Range.Start.Byte]) + near[1] + string(data[d.Range.End.Byte:])}
	}
	if block, is := strings.CutPrefix(d.Hint, "write:\n"); is {
		return []string{pasteLines(string(data), strings.Split(block, "\n"), d.Range.Start.Line)}
	}
	if !ok || d.Hint == "write the value out" {
		return nil
	}
	text := afterText.FindStringSubmatch(rest)[1]
	if inside, _, ok := strings.Cut(strings.TrimPrefix(rest, "`"), "`"); ok && rest[0] == '`' {
		text = strings.TrimPrefix(inside, "- ")
	}
	if strings.HasPrefix(text, "{") && strings.Contains(rest, "}") {
		text = rest[:strings.LastIndex(rest, "}")+1]
		if before, _, ok := strings.Cut(text, "}, or "); ok {
			text = before + "}"
		}
		if before, _, ok := strings.Cut(text, "} or "); ok {
			text = before + "}"
		}
	}
	if text == "" || placeholder.MatchString(text) || strings.Contains(d.Hint, "to say that") {
		return nil
	}
	paste := func(from, to int, text string) string { return string(data[:from]) + text + string(data[to:]) }
	src := newSource("workshop.yaml", data)
	root := parse(src, &problems{})
	pair := pairText.FindStringSubmatch(text)
	if root == nil {
		if pair == nil || d.Range.Start.Line == 0 {
			return nil
		}
		line := src.lines[d.Range.Start.Line-1]
		if at := strings.Index(string(data[line:]), pair[1]+":"); at >= 0 {
			return []string{paste(line+at, src.lineEnd(line), text)}
		}
		return nil
	}
	if pair == nil && strings.ContainsRune(text, ' ') && !strings.ContainsAny(text[:1], `{["`) {
		return nil // words
	}
	var out []string
	from, to := d.Range.Start.Byte, d.Range.End.Byte
	if pair == nil && to > from {
		if data[from] == '"' && text[0] == '$' {
			text = `"` + text + `"`
		}
		out = append(out, paste(from, to, text))
	}
	var visit func(n *node)
	visit = func(n *node) {
		for _, item := range n.items {
			if item.rng.Start.Byte <= from && to <= item.rng.End.Byte && to > from {
				shown := text
				if pair != nil && !strings.HasPrefix(text, "{") {
					shown = "{" + text + "}"
				}
				out = append(out, paste(item.rng.Start.Byte, item.rng.End.Byte, shown))
			}
			visit(item)
		}
		for i, p := range n.pairs {
			exact := p.value.rng.Start.Byte <= from && to <= p.value.rng.End.Byte
			switch {
			case pair == nil:
			case p.key.rng == d.Range, exact && p.key.text == pair[1]:
				end := max(p.value.rng.End.Byte, p.key.rng.End.Byte)
				if p.value.isNull() && strings.HasPrefix(string(data[end:]), ":") {
					end++
				}
				out = append(out, paste(p.key.rng.Start.Byte, end, text))
			case i == 0 && d.Code == "missing-key" && n.rng.Start.Byte == from:
				between := ", "
				if !strings.Contains("{[", string(data[n.rng.Start.Byte])) {
					between = "\n" + strings.Repeat(" ", p.key.rng.Start.Column-1)
				}
				out = append(out, paste(p.key.rng.Start.Byte, p.key.rng.Start.Byte, text+between))
			}
			visit(p.value)
		}
	}
	visit(root)
	return out
}

// pasteLines puts lines in the place of those that they indent.
func pasteLines(file string, block []string, at int) string {
	lines := strings.Split(file, "\n")
	old := block[1:]
	from := at - 1
	if strings.TrimSpace(lines[from]) == strings.TrimSpace(block[0]) {
		old = block
	} else {
		from = slices.Index(lines, strings.TrimPrefix(old[0], "  "))
	}
	return strings.Join(slices.Concat(lines[:from], block, lines[from+len(old):]), "\n")
}
