package workshop

import (
	"strings"

	"github.com/llmdo/workshop/diag"
)

// scalar is a value of the file whose variables are replaced, kept in pieces
// so that it can be split without losing which piece came from where.
type scalar struct {
	node  *node
	src   *source
	parts []part
}

// part is literal text or one variable.
type part struct {
	text     string // the value
	template string // what is rendered: `$$` for a literal `$`; `${NAME:?}`
	variable string // name; empty for literal text
	origin   Origin // of text
	from, to int    // bytes of node.text
}

// text returns the value.
func (s scalar) text() string {
	if len(s.parts) == 1 {
		return s.parts[0].text
	}
	var b strings.Builder
	for _, p := range s.parts {
		b.WriteString(p.text)
	}
	return b.String()
}

// variable returns the name of the first variable in it, or "".
func (s scalar) variable() string {
	for _, p := range s.parts {
		if p.variable != "" {
			return p.variable
		}
	}
	return ""
}

// rng returns its place, as exactly as the file shows it.
func (s scalar) rng() diag.Range {
	if s.node.inner < 0 || len(s.parts) == 0 {
		return s.node.rng
	}
	from, to := s.parts[0].from, s.parts[len(s.parts)-1].to
	if from == 0 && to == len(s.node.text) {
		return s.node.rng
	}
	return s.src.span(s.node.inner+from, s.node.inner+to)
}

// source returns its place and its template.
func (s scalar) source() diag.Source {
	out := diag.Source{Range: s.rng()}
	if s.variable() != "" {
		var b strings.Builder
		for _, p := range s.parts {
			b.WriteString(p.template)
		}
		out.Template = b.String()
	}
	return out
}

// cut splits at the first sep that is written in the file; a sep in the value
// of a variable does not count.
func (s scalar) cut(sep byte) (before, after scalar, found bool) {
	for i, p := range s.parts {
		if p.variable != "" {
			continue
		}
		at := strings.IndexByte(p.text, sep)
		if at < 0 {
			continue
		}
		l, r := p.split(at)
		return s.with(append(append([]part{}, s.parts[:i]...), l)), s.with(append([]part{r}, s.parts[i+1:]...)), true
	}
	return s, s.with(nil), false
}

// cutLast is cut at the last sep.
func (s scalar) cutLast(sep byte) (before, after scalar, found bool) {
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := s.parts[i]
		if p.variable != "" {
			continue
		}
		at := strings.LastIndexByte(p.text, sep)
		if at < 0 {
			continue
		}
		l, r := p.split(at)
		return s.with(append(append([]part{}, s.parts[:i]...), l)), s.with(append([]part{r}, s.parts[i+1:]...)), true
	}
	return s.with(nil), s, false
}

// split divides literal text before and after the byte at.
func (p part) split(at int) (part, part) {
	// `$$` is two bytes of the file and one of the text: count the dollars.
	raw := at + strings.Count(p.text[:at], "$")
	l := part{text: p.text[:at], template: diag.Literal(p.text[:at]), from: p.from, to: p.from + raw}
	r := part{text: p.text[at+1:], template: diag.Literal(p.text[at+1:]), from: p.from + raw + 1, to: p.to}
	return l, r
}

// split cuts at every sep.
func (s scalar) split(sep byte) []scalar {
	var out []scalar
	for {
		before, after, found := s.cut(sep)
		out = append(out, before)
		if !found {
			return out
		}
		s = after
	}
}

func (s scalar) with(parts []part) scalar {
	kept := parts[:0:0]
	for _, p := range parts {
		if p.text != "" || p.variable != "" {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 && len(parts) > 0 {
		kept = parts[:1]
	}
	return scalar{node: s.node, src: s.src, parts: kept}
}
