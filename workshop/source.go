package workshop

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/llmdo/workshop/diag"
)

// source is the text of one file and knows where its lines begin.
type source struct {
	name  string
	data  []byte // as it is in the file
	skip  int    // length of a byte order mark
	lines []int  // byte at which each line begins

	// The last place that was asked for: most questions come in the order of
	// the file, and counting a long line from its begin each time would be
	// quadratic.
	last struct{ line, column, at int }
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func newSource(name string, data []byte) *source {
	s := &source{name: name, data: data, lines: []int{0}}
	if bytes.HasPrefix(data, byteOrderMark) {
		s.skip = len(byteOrderMark)
		s.lines[0] = s.skip
	}
	for i, c := range data {
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// offset returns the byte at a line and a column (in characters, from 1).
func (s *source) offset(line, column int) int {
	if line < 1 || line > len(s.lines) {
		return len(s.data)
	}
	at, col := s.lines[line-1], 1
	if s.last.line == line && s.last.column <= column {
		at, col = s.last.at, s.last.column
	}
	for ; col < column && at < len(s.data); col++ {
		_, n := utf8.DecodeRune(s.data[at:])
		at += n
	}
	s.last.line, s.last.column, s.last.at = line, col, at
	return at
}

// pos returns the place of a byte.
func (s *source) pos(at int) diag.Pos {
	at = min(max(at, s.skip), len(s.data))
	line, found := slices.BinarySearch(s.lines, at)
	if !found {
		line--
	}
	from, col := s.lines[line], 1
	if s.last.line == line+1 && s.last.at <= at {
		from, col = s.last.at, s.last.column
	}
	col += utf8.RuneCount(s.data[from:at])
	s.last.line, s.last.column, s.last.at = line+1, col, at
	return diag.Pos{Line: line + 1, Column: col, Byte: at}
}

// span returns the range between two bytes.
func (s *source) span(from, to int) diag.Range {
	return diag.Range{Filename: s.name, Start: s.pos(from), End: s.pos(max(from, to))}
}

// lineEnd returns the byte after the text of the line that at lies in.
func (s *source) lineEnd(at int) int {
	end := len(s.data)
	if i := bytes.IndexByte(s.data[at:], '\n'); i >= 0 {
		end = at + i
	}
	for end > at && (s.data[end-1] == '\r' || s.data[end-1] == ' ' || s.data[end-1] == '\t') {
		end--
	}
	return end
}

// whole returns a range that names the file alone.
func (s *source) whole() diag.Range { return diag.Range{Filename: s.name} }
