package diagtext

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/textwrap"
	"github.com/llmdo/workshop/internal/lib/visible"
)

// TextOptions says how [Text] writes.
type TextOptions struct {
	// Sources holds the files that snippets are taken from, by the file name
	// of the ranges. A missing file means no snippet.
	Sources map[string][]byte
	// Color adds ANSI colours; decided by the caller (terminal, NO_COLOR).
	Color bool
	// Width is the width of the terminal in columns: longer source lines are cut
	// around the marked place, details and hints wrapped. 0 means no limit.
	Width int
}

// ANSI sequences of the text writer.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	blue   = "\x1b[1;34m"
	cyan   = "\x1b[36m"
	reset  = "\x1b[0m"
)

// Text writes the diagnostics for people, in the order of the list:
//
//	workshop.yaml:3:5: error: unknown key "imgae" [unknown-key]
//	  |
//	3 |     imgae: x
//	  |     ^^^^^
//	  = hint: did you mean "image"?
//
// Control characters of the sources and messages are written as escapes, so
// that no file can drive the terminal.
func Text(w io.Writer, l diag.List, o TextOptions) error {
	t := textWriter{TextOptions: o, lines: map[string][][]byte{}}
	for i, d := range l {
		if i > 0 {
			t.b.WriteByte('\n')
		}
		t.diagnostic(d)
	}
	_, err := w.Write(t.b.Bytes())
	return err
}

type textWriter struct {
	TextOptions
	b     bytes.Buffer
	lines map[string][][]byte
}

func (t *textWriter) paint(color, s string) string {
	if !t.Color || s == "" {
		return s
	}
	return color + s + reset
}

func (t *textWriter) diagnostic(d diag.Diagnostic) {
	color := red
	if d.Severity == diag.Warning {
		color = yellow
	}
	at, code := Printable(d.Range.String()), ""
	head := d.Severity.String() + ": "
	if at != "" {
		head = at + ": " + head
	}
	if d.Code != "" {
		code = " [" + d.Code + "]"
	}
	line := textwrap.Lines(head+oneLine(d.Summary)+code, t.Width, 2)
	if rest, ok := strings.CutPrefix(line, head); ok { // else the file's name fills the line
		rest, ok := strings.CutSuffix(rest, code)
		if !ok { // it has a line of its own
			code = ""
		}
		head = strings.Replace(head, at, t.paint(bold, at), 1)
		head = strings.TrimSuffix(head, d.Severity.String()+": ") + t.paint(color, d.Severity.String()) + ": "
		line = head + t.paint(bold, rest) + code
	}
	t.b.WriteString(line + "\n")
	gutter := t.snippet(d.Range, color)
	t.note(gutter, "", d.Detail)
	t.note(gutter, "hint", d.Hint)
	for _, r := range d.Related {
		msg := r.Message
		if at := r.Range.String(); at != "" {
			msg = at + ": " + msg
		}
		t.note(gutter, "see", msg)
		t.snippet(r.Range, blue)
	}
}

// note writes a text of one or more lines below a snippet.
func (t *textWriter) note(gutter int, label, text string) {
	if text == "" {
		return
	}
	pad := strings.Repeat(" ", gutter)
	width := 0
	if t.Width > 0 {
		width = max(t.Width-gutter-len(" = : ")-len(label), 20)
	}
	for i, line := range strings.Split(textwrap.Lines(text, width, 0), "\n") {
		switch {
		case i > 0 && label != "":
			fmt.Fprintf(&t.b, "%s   %*s%s\n", pad, len(label)+2, "", Printable(line))
		case label != "":
			fmt.Fprintf(&t.b, "%s = %s: %s\n", pad, t.paint(cyan, label), Printable(line))
		case i == 0:
			fmt.Fprintf(&t.b, "%s = %s\n", pad, Printable(line))
		default:
			fmt.Fprintf(&t.b, "%s   %s\n", pad, Printable(line))
		}
	}
}

// snippet writes the line of the range with a marker and returns the width of
// the line-number column.
func (t *textWriter) snippet(r diag.Range, color string) int {
	line, ok := t.line(r.Filename, r.Start.Line)
	if !ok {
		return 1
	}
	number := strconv.Itoa(r.Start.Line)
	pad := strings.Repeat(" ", len(number))
	text, from, to := t.window(line, r, len(number)+3)
	bar := t.paint(blue, "|")
	fmt.Fprintf(&t.b, "%s %s\n", pad, bar)
	fmt.Fprintf(&t.b, "%s %s %s\n", t.paint(blue, number), bar, text)
	fmt.Fprintf(&t.b, "%s %s %s%s\n", pad, bar, strings.Repeat(" ", from), t.paint(color, strings.Repeat("^", max(1, to-from))))
	return len(number)
}

// window returns the printable part of the line that is shown and the columns
// of the marker in it.
func (t *textWriter) window(line []byte, r diag.Range, used int) (text string, from, to int) {
	start := r.Start.Column - 1
	end := start + 1
	switch {
	case r.End.Line == r.Start.Line && r.End.Column > r.Start.Column:
		end = r.End.Column - 1
	case r.End.Line > r.Start.Line:
		end = utf8.RuneCount(bytes.TrimRight(line, " \t"))
	}
	var cells []string
	from, to = -1, -1
	width, column := 0, 0
	for len(line) > 0 {
		c, n := utf8.DecodeRune(line)
		cell := Printable(string(line[:n]))
		if c == '\t' {
			cell = "    "
		}
		if column == start {
			from = width
		}
		if column == end {
			to = width
		}
		cells = append(cells, cell)
		width += runewidth.StringWidth(cell)
		column++
		line = line[n:]
	}
	if from < 0 {
		from = width + max(0, min(start-column, 1))
	}
	if to < 0 {
		to = max(width, from+1)
	}
	room := t.Width - used
	if t.Width == 0 || width <= room || room < 20 {
		if t.Width != 0 && room < 20 || width <= maxLine || t.Width != 0 && width <= room {
			return strings.Join(cells, ""), from, to
		}
		room = maxLine
	}
	return cut(cells, from, to, room)
}

// maxLine is how much of a source line is shown without a width.
const maxLine = 200

// cut shows about room columns around the marker.
func cut(cells []string, from, to, room int) (string, int, int) {
	room -= 6 // for the marks that something is left out
	left := max(0, from-room/3)
	var b strings.Builder
	at, shift := 0, 0
	if left > 0 {
		b.WriteString("...")
		shift = 3 - left
	}
	started := false
	for _, c := range cells {
		w := runewidth.StringWidth(c)
		if at >= left && at+w <= left+room {
			if !started && left > 0 {
				shift = 3 - at
			}
			started = true
			b.WriteString(c)
		}
		at += w
	}
	end := left + room
	if at > end {
		b.WriteString("...")
	}
	return b.String(), from + shift, max(from+1, min(to, end)) + shift
}

func (t *textWriter) line(file string, n int) ([]byte, bool) {
	data, ok := t.Sources[file]
	if !ok || n < 1 {
		return nil, false
	}
	lines, ok := t.lines[file]
	if !ok {
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
		lines = bytes.Split(data, []byte("\n"))
		t.lines[file] = lines
	}
	if n > len(lines) {
		return nil, false
	}
	return lines[n-1], true
}

// oneLine keeps a summary on its line.
func oneLine(s string) string { return Printable(strings.ReplaceAll(s, "\n", " ")) }

// Printable replaces what a person can't see ([visible.Hidden]) and invalid UTF-8 by
// escapes such as \x1b, so that text of a file is safe on a terminal.
func Printable(s string) string {
	clean := true
	for _, r := range s {
		if !plain(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case plain(r):
			b.WriteRune(r)
		case r < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// plain reports whether a rune is text that a person sees.
func plain(r rune) bool { return r == '\t' || r != utf8.RuneError && !visible.Hidden(r) }
