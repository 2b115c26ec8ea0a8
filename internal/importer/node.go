package importer

import (
	"sort"
	"unicode/utf8"

	"github.com/llmdo/workshop/diag"
)

const (
	// MaxSize of a file that is imported, in bytes.
	MaxSize = 1 << 20
	// maxDepth and maxNodes bound what is in it; aliases are counted expanded.
	maxDepth = 64
	maxNodes = 20_000
)

type kind int

const (
	null kind = iota
	text
	number
	boolean
	list
	mapping
)

// node is a value of a file with its place.
type node struct {
	kind  kind
	text  string // of a scalar
	items []*node
	pairs []pair
	at    place
}

// place is where a value is: bytes, or a line and a column with a length, as the parser
// names it. Only what is said is made a range of: that costs a look at the line.
type place struct{ from, to, line, column int }

// pair is a key of a mapping.
type pair struct {
	key   string
	at    place // of the key
	value *node
}

// get is the value of a key; nil: there is none.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, p := range n.pairs {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// lastOf leaves of a key that is given twice the last, as readers of JSON take it.
func lastOf(pairs []pair) []pair {
	at, out := make(map[string]int, len(pairs)), pairs[:0:0]
	for _, p := range pairs {
		if i, twice := at[p.key]; twice {
			out[i] = p
			continue
		}
		at[p.key] = len(out)
		out = append(out, p)
	}
	return out
}

// str is the text of a scalar; of another value "".
func (n *node) str() string {
	if n == nil || n.kind == list || n.kind == mapping {
		return ""
	}
	return n.text
}

// isScalar reports whether a value has a text: nothing but a list, a mapping and null
// has none.
func (n *node) isScalar() bool {
	return n != nil && (n.kind == text || n.kind == number || n.kind == boolean)
}

// each are the items of a list, or the value itself.
func (n *node) each() []*node {
	switch {
	case n == nil || n.kind == null:
		return nil
	case n.kind == list:
		return n.items
	}
	return []*node{n}
}

// source knows where the lines of a file begin.
type source struct {
	name  string
	data  []byte
	lines []int
}

func newSource(name string, data []byte) *source {
	s := &source{name: name, data: data, lines: []int{0}}
	for i, c := range data {
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// pos is the place of a byte.
func (s *source) pos(at int) diag.Pos {
	at = min(max(at, 0), len(s.data))
	line := sort.SearchInts(s.lines, at+1)
	begin := s.lines[line-1]
	return diag.Pos{Line: line, Column: 1 + utf8.RuneCount(s.data[begin:at]), Byte: at}
}

// at is the byte at a line and a column, in characters.
func (s *source) at(line, column int) int {
	if line < 1 || line > len(s.lines) {
		return 0
	}
	at := s.lines[line-1]
	for ; column > 1 && at < len(s.data); column-- {
		_, n := utf8.DecodeRune(s.data[at:])
		at += n
	}
	return at
}

// span is the range of a place; that of none is the file.
func (s *source) span(p place) diag.Range {
	if p == (place{}) {
		return diag.Range{Filename: s.name}
	}
	if p.line > 0 {
		length := p.to
		p.from = s.at(p.line, p.column)
		p.to = min(p.from+length, len(s.data))
	}
	return diag.Range{Filename: s.name, Start: s.pos(p.from), End: s.pos(p.to)}
}

func (s *source) invalid(at place, summary, hint string) *diag.Diagnostic {
	return &diag.Diagnostic{Severity: diag.Error, Code: "import-invalid", Range: s.span(at), Summary: summary, Hint: hint}
}
