// Package textwrap breaks text for the width of a terminal.
package textwrap

import (
	"regexp"
	"strings"
	"sync"

	"github.com/mattn/go-runewidth"
)

// Lines breaks the lines of a text at blanks, so that none is wider than width
// columns; 0 means no limit. The lines that come of one are indented by hang
// blanks more than it. What is in backquotes stays together, to be pasted; what
// has no blank is left to the terminal, and blanks within a line stay. Colours take no
// room.
func Lines(text string, width, hang int) string {
	if width <= 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if columns(line) > width {
			lines[i] = strings.Join(wrapLine(line, width, hang), "\n")
		}
	}
	return strings.Join(lines, "\n")
}

func wrapLine(line string, width, hang int) []string {
	rest := strings.TrimLeft(line, " ")
	indent := len(line) - len(rest)
	after := min(indent+hang, width/2)
	rows, used := [][]string{nil}, indent
	for _, word := range words(rest) {
		last := len(rows) - 1
		w := columns(word)
		switch {
		case len(rows[last]) == 0:
		case used+1+w > width:
			rows, used, last = append(rows, nil), after, last+1
			w = columns(strings.TrimLeft(word, " "))
		default:
			used++
		}
		rows[last] = append(rows[last], word)
		used += w
	}
	// A short word at the end takes the one before along.
	if last := len(rows) - 1; last > 0 && len(rows[last]) == 1 && columns(strings.TrimLeft(rows[last][0], " ")) <= shortWord {
		if before := rows[last-1]; len(before) > 1 && after+columns(before[len(before)-1])+1+columns(rows[last][0]) <= width {
			rows[last-1], rows[last] = before[:len(before)-1], append([]string{before[len(before)-1]}, rows[last]...)
		}
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		blanks := after
		if i == 0 {
			blanks = indent
		}
		out[i] = strings.Repeat(" ", blanks) + strings.TrimLeft(strings.Join(row, " "), " ")
	}
	return out
}

// shortWord is the width of a word that isn't left alone in a line.
const shortWord = 3

// columns is the width of a text on a terminal: colours have none.
func columns(text string) int {
	return runewidth.StringWidth(colour().ReplaceAllString(text, ""))
}

// colour is an escape sequence that selects one (SGR of ECMA-48).
var colour = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[0-9;]*m") })

// words are the parts of a line between blanks; a part in backquotes keeps its
// blanks. Each blank but the first before a part is the part's.
func words(line string) []string {
	var out []string
	quoted, blanks := false, ""
	for part := range strings.SplitSeq(line, " ") {
		switch {
		case quoted:
			out[len(out)-1] += " " + part
		case part == "":
			blanks += " "
		default:
			out, blanks = append(out, blanks+part), ""
		}
		quoted = quoted != (strings.Count(part, "`")%2 == 1)
	}
	return out
}

// Paragraphs wraps a text that was wrapped by hand: lines that follow each other
// are one paragraph, unless a line is indented.
func Paragraphs(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out []string
	flowing := false
	for line := range strings.SplitSeq(text, "\n") {
		flows := line != "" && line[0] != ' ' && line[0] != '\t'
		if flows && flowing {
			out[len(out)-1] += " " + line
		} else {
			out = append(out, line)
		}
		flowing = flows
	}
	return Lines(strings.Join(out, "\n"), width, 0)
}
