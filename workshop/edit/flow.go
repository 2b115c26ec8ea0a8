package edit

import (
	"bytes"
	"strings"
)

// flow is a list or mapping in brackets.
type flow struct {
	open, close int // bytes of the brackets
	last        int // the last byte before close that is neither blank nor comment
}

// flow finds the brackets of what begins at a byte.
func (f *file) flow(at int) (x flow, ok bool) {
	if at >= len(f.data) || f.data[at] != '[' && f.data[at] != '{' {
		return flow{}, false
	}
	x = flow{open: at}
	depth := 0
	for i := at; i < len(f.data); i++ {
		switch c := f.data[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '#':
			if i > 0 && strings.IndexByte(" \t\r\n", f.data[i-1]) >= 0 {
				if n := bytes.IndexByte(f.data[i:], '\n'); n >= 0 {
					i += n
					continue
				}
				return flow{}, false
			}
		case '"', '\'':
			// A quote inside of text is text.
			if strings.IndexByte("[{,:?", f.data[x.last]) >= 0 {
				i = f.quoteEnd(i)
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				x.close = i
				return x, true
			}
		}
		x.last = i
	}
	return flow{}, false
}

// quoteEnd returns the byte of the quote that ends the text in quotes at i.
func (f *file) quoteEnd(i int) int {
	quote := f.data[i]
	for i++; i < len(f.data); i++ {
		switch {
		case quote == '"' && f.data[i] == '\\':
			i++
		case f.data[i] != quote:
		case quote == '\'' && i+1 < len(f.data) && f.data[i+1] == '\'':
			i++
		default:
			return i
		}
	}
	return len(f.data) - 1
}

// into returns the insertions that put text after the last entry of a flow.
func (f *file) into(x flow, text, comment string) []insertion {
	trailing := f.data[x.last] == ','
	lastLine := f.lineOf(x.last)
	switch {
	case x.last == x.open:
		return []insertion{{x.open + 1, text}}
	case lastLine == f.lineOf(x.close) && trailing:
		return []insertion{{x.last + 1, " " + text}}
	case lastLine == f.lineOf(x.close):
		return []insertion{{x.last + 1, ", " + text}}
	}
	line := f.text(lastLine)
	spaces, _ := indent(line)
	if lastLine == f.lineOf(x.open) {
		spaces += 2
	}
	added := strings.Repeat(" ", spaces) + text
	var out []insertion
	if trailing {
		added += ","
	} else {
		out = append(out, insertion{x.last + 1, ","})
	}
	return append(out, f.below(lastLine, withComment(added, comment)))
}

func withComment(line, comment string) string {
	if comment = strings.TrimSpace(comment); comment == "" {
		return line
	}
	return line + " # " + comment
}
