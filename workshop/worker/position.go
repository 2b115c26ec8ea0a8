package worker

import (
	"sort"
	"unicode/utf8"

	"github.com/llmdo/workshop/diag"
)

// text is a file with the places of its lines.
type text struct {
	path  string
	data  []byte
	lines []int // byte at which each line begins
	last  place // asked for last: lists of one long line are read from left to right
}

type place struct{ line, byte, column int }

func newText(path string, data []byte) *text {
	t := &text{path: path, data: data, lines: []int{0}}
	for i, c := range data {
		if c == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	return t
}

// pos returns the place of a byte.
func (t *text) pos(b int) diag.Pos {
	b = max(0, min(b, len(t.data)))
	line := sort.SearchInts(t.lines, b+1) - 1
	begin := t.lines[line]
	if line == 0 {
		begin += len(t.bom()) // editors don't show it
	}
	column := 1
	if l := t.last; l.line == line+1 && begin <= l.byte && l.byte <= b {
		begin, column = l.byte, l.column
	}
	column += utf8.RuneCount(t.data[min(begin, b):b])
	t.last = place{line + 1, b, column}
	return diag.Pos{Line: line + 1, Column: column, Byte: b}
}

// span returns the range from one byte to before another.
func (t *text) span(from, to int) diag.Range {
	return diag.Range{Filename: t.path, Start: t.pos(from), End: t.pos(max(from, to))}
}

// offset returns the byte at a line and a column, both from 1, the column in
// characters; it stays inside the line.
func (t *text) offset(line, column int) int {
	line = max(1, min(line, len(t.lines)))
	b, end := t.lines[line-1], len(t.data)
	if line < len(t.lines) {
		end = t.lines[line] - 1
	}
	if line == 1 {
		b += len(t.bom())
	}
	for ; column > 1 && b < end; column-- {
		_, n := utf8.DecodeRune(t.data[b:end])
		b += n
	}
	return b
}

// lineEnd returns the byte after the last character of the line that holds b.
func (t *text) lineEnd(b int) int {
	for ; b < len(t.data) && t.data[b] != '\n'; b++ {
	}
	for b > 0 && b <= len(t.data) && t.data[b-1] == '\r' {
		b--
	}
	return b
}

const byteOrderMark = "\uFEFF"

func (t *text) bom() string {
	if len(t.data) >= len(byteOrderMark) && string(t.data[:len(byteOrderMark)]) == byteOrderMark {
		return byteOrderMark
	}
	return ""
}
