package edit

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// file is the text and what it means.
type file struct {
	data   []byte
	skip   int   // length of a byte order mark
	starts []int // byte at which each line begins
	root   *yaml.Node
	end    string // of a line: "\n" or "\r\n"
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func parse(data []byte) (*file, error) {
	if len(data) > maxSize {
		return nil, &Error{Summary: "the file is too large"}
	}
	f := &file{data: data, starts: []int{0}, end: "\n"}
	if bytes.HasPrefix(data, byteOrderMark) {
		f.skip = len(byteOrderMark)
		f.starts[0] = f.skip
	}
	for i, c := range data {
		if c == '\n' {
			f.starts = append(f.starts, i+1)
			if len(f.starts) == 2 && i > 0 && data[i-1] == '\r' {
				f.end = "\r\n"
			}
		}
	}
	// What YAML takes for an end of a line and we don't would move all places.
	rest := bytes.ReplaceAll(data[f.skip:], []byte("\r\n"), []byte("\n"))
	if !utf8.Valid(data) || bytes.ContainsAny(rest, "\r\u0085\u2028\u2029\ufeff") {
		return nil, &Error{Summary: "the file is not text with LF or CRLF at the ends of its lines"}
	}
	root, err := load(data[f.skip:])
	if err != nil {
		return nil, &Error{Summary: "the file can't be read as YAML", Hint: "`workshop validate` says where"}
	}
	f.root = root
	return f, nil
}

// offset returns the byte at which a node begins.
func (f *file) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(f.starts) {
		return len(f.data)
	}
	at := f.starts[n.Line-1]
	for col := 1; col < n.Column && at < len(f.data); col++ {
		_, size := utf8.DecodeRune(f.data[at:])
		at += size
	}
	return at
}

// text returns a line, from 1, without its end.
func (f *file) text(line int) []byte {
	end := len(f.data)
	if line < len(f.starts) {
		end = f.starts[line] - 1
	}
	return bytes.TrimSuffix(f.data[f.starts[line-1]:end], []byte("\r"))
}

// lineOf returns the line, from 1, that a byte is in.
func (f *file) lineOf(at int) int {
	line, found := slices.BinarySearch(f.starts, at)
	if found {
		return line + 1
	}
	return line
}

// indent returns the number of spaces that a line begins with; what is 0 for
// a blank line, '#' for a comment, else the first byte of its text.
func indent(line []byte) (spaces int, what byte) {
	text := bytes.TrimLeft(line, " ")
	spaces = len(line) - len(text)
	if text = bytes.TrimLeft(text, "\t"); len(text) == 0 {
		return spaces, 0
	}
	return spaces, text[0]
}

// blockEnd returns the last line of what begins in a line and is indented
// deeper than depth; list allows items at depth itself too. Comments count
// where they are indented deeper and more follows or are right below.
func (f *file) blockEnd(line, depth int, list bool) int {
	end := line
	joined := true // no blank line since end
	for i := line + 1; i <= len(f.starts); i++ {
		text := f.text(i)
		spaces, what := indent(text)
		switch {
		case what == 0:
			joined = false
		case what == '#':
			if spaces > depth && joined {
				end = i
			}
		case spaces > depth, list && spaces == depth && what == '-' && isItem(text[spaces:]):
			end, joined = i, true
		default:
			return end
		}
	}
	return end
}

func isItem(text []byte) bool {
	return len(text) == 1 || text[1] == ' ' || text[1] == '\t'
}

// insertion is text that is put in before a byte of the file.
type insertion struct {
	at   int
	text string
}

// with returns the text with the insertions, which are in order.
func (f *file) with(list []insertion) []byte {
	var out []byte
	last := 0
	for _, x := range list {
		out = append(append(out, f.data[last:x.at]...), x.text...)
		last = x.at
	}
	return append(out, f.data[last:]...)
}

// below returns an insertion of whole lines below a line.
func (f *file) below(line int, lines ...string) insertion {
	var text []byte
	if line >= len(f.starts) { // the last one, without an end
		for _, l := range lines {
			text = append(append(text, f.end...), l...)
		}
		return insertion{len(f.data), string(text)}
	}
	for _, l := range lines {
		text = append(append(text, l...), f.end...)
	}
	return insertion{f.starts[line], string(text)}
}
