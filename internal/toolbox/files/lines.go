package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/tool"
)

const (
	// maxLine bytes of a line are searched.
	maxLine = 1 << 20
	// maxText bytes of a line are shown.
	maxText = 1000
	// lead is how much of a long line is shown before the match.
	lead = 200
	// maxResult bytes of names and texts are in a result.
	maxResult = 4 << 20
)

var (
	errStop   = errors.New("enough") // ends a walk
	errBinary = errors.New("a binary file")
	errNext   = errors.New("enough of this file")
)

// searcher looks for lines in one file after the other.
type searcher struct {
	matcher   *matcher
	filesOnly bool
	around    int // lines before and after
	most      int
	buf       []byte
	base      string // of the paths of its files, in results

	matches   []tool.Match
	size      int // bytes of what is shown
	truncated bool

	// of the file that is searched:
	path   string
	number int // of the last line
	before []string
	first  int // index of its first match
}

// file searches one. Its matches don't count when it turns out to be binary.
func (s *searcher) file(ctx context.Context, file string, r io.Reader) error {
	s.path, s.number, s.before, s.first = file, 0, s.before[:0], len(s.matches)
	size, truncated := s.size, s.truncated
	have, cut := 0, false // cut: the rest of this line is passed over
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if have == len(s.buf) {
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		n, err := r.Read(s.buf[have:])
		if bytes.IndexByte(s.buf[have:have+n], 0) >= 0 {
			s.matches, s.size, s.truncated = s.matches[:s.first], size, truncated
			return errBinary
		}
		have += n
		if err != nil && err != io.EOF {
			return err
		}
		data := s.buf[:have]
		if cut {
			end := bytes.IndexByte(data, '\n')
			if end < 0 && err == nil {
				have = 0
				continue
			}
			data, cut = data[end+1:], false
			if end < 0 {
				data = nil
			}
		}
		end := bytes.LastIndexByte(data, '\n') + 1
		switch {
		case err != nil:
			end = len(data)
		case end == 0 && len(data) >= maxLine:
			end, cut = len(data), true
		}
		switch stop := s.block(data[:end]); {
		case stop == errNext:
			return nil
		case stop != nil:
			return stop
		case err != nil && s.truncated:
			return errStop
		case err != nil:
			return nil
		}
		have = copy(s.buf, data[end:])
	}
}

// block searches whole lines.
func (s *searcher) block(b []byte) error {
	const part = 8 << 10 // what package regexp is fastest with
	for len(b) > 0 {
		end := len(b)
		if end > part {
			if n := bytes.IndexByte(b[part:], '\n'); n >= 0 {
				end = part + n + 1
			}
		}
		lines := b[:end]
		b = b[end:]
		if s.matcher.nothing(lines) && !s.pending() {
			s.pass(lines)
			continue
		}
		for len(lines) > 0 {
			end := bytes.IndexByte(lines, '\n') + 1
			if end == 0 {
				end = len(lines)
			}
			if err := s.line(trimEnd(lines[:end])); err != nil {
				return err
			}
			lines = lines[end:]
		}
	}
	return nil
}

// pass counts lines without a match.
func (s *searcher) pass(lines []byte) {
	s.number += bytes.Count(lines, []byte("\n"))
	if lines[len(lines)-1] != '\n' {
		s.number++
	}
	if s.around == 0 {
		return
	}
	at := len(lines)
	for n := 0; n < s.around && at > 0; n++ {
		at = bytes.LastIndexByte(lines[:at-1], '\n') + 1
	}
	for _, line := range bytes.SplitAfter(lines[at:], []byte("\n")) {
		if len(line) > 0 {
			s.remember(trimEnd(line))
		}
	}
}

func (s *searcher) remember(line []byte) {
	if s.around == 0 {
		return
	}
	if len(s.before) == s.around {
		copy(s.before, s.before[1:])
		s.before = s.before[:len(s.before)-1]
	}
	s.before = append(s.before, cutText(line, 0))
}

// pending reports whether a match waits for lines after it.
func (s *searcher) pending() bool {
	n := len(s.matches)
	return n > s.first && s.number < s.matches[n-1].Line+s.around
}

func (s *searcher) line(line []byte) error {
	s.number++
	for i := len(s.matches) - 1; i >= s.first && s.number <= s.matches[i].Line+s.around; i-- {
		s.matches[i].After = append(s.matches[i].After, s.show(line, 0))
	}
	if !s.truncated {
		if from, ok := s.matcher.line(line); ok {
			if len(s.matches) >= s.most || s.size > maxResult {
				s.truncated = true
			} else if s.filesOnly {
				s.matches = append(s.matches, tool.Match{Path: s.shown()})
				return errNext
			} else {
				m := tool.Match{Path: s.shown(), Line: s.number, Text: s.show(line, from), Before: slices.Clone(s.before)}
				s.matches = append(s.matches, m)
				s.size += len(m.Path)
			}
		}
	}
	s.remember(line)
	if s.truncated && !s.pending() {
		return errStop
	}
	return nil
}

// shown is the path of the file in results.
func (s *searcher) shown() string { return show(path.Join(s.base, s.path)) }

// show returns a line for the result, which counts it.
func (s *searcher) show(line []byte, from int) string {
	t := cutText(line, from)
	s.size += len(t)
	return t
}

// cutText returns a line as text; of a long one, the part around a place.
func cutText(line []byte, from int) string {
	begin, end := 0, len(line)
	if len(line) > maxText {
		if from > maxText-lead {
			begin = min(from-lead, len(line)-maxText)
		}
		end = begin + maxText
	}
	for begin > 0 && begin < end && !utf8.RuneStart(line[begin]) {
		begin++
	}
	for end < len(line) && end > begin && !utf8.RuneStart(line[end]) {
		end--
	}
	t := show(string(line[begin:end]))
	if begin > 0 {
		t = "…" + t
	}
	if end < len(line) {
		t += "…"
	}
	return t
}

func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}

// show makes a name that is not UTF-8 fit for JSON.
func show(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
