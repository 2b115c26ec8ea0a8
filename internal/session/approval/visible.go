package approval

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/lib/visible"
)

// shown writes a line of text so that a person sees all of it, and a terminal does
// nothing with it: what can't be seen ([visible.Hidden]) is written as \u{…}.
func shown(s string) string {
	var b strings.Builder
	marks := 0
	for i, r := range s {
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\n':
			b.WriteString(`\n`)
		case visible.Hidden(r) || marks > 2:
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// shownLines is shown for text of several lines, which stay lines; tabs stay
// too.
func shownLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		cells := strings.Split(l, "\t")
		for j, c := range cells {
			cells[j] = shown(c)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// Barred is text of several lines, each after a bar, so that it can't look like a
// part of the question that it is in.
func Barred(text string) string {
	if text == "" {
		return ""
	}
	return "  | " + strings.ReplaceAll(shownLines(strings.TrimSuffix(text, "\n")), "\n", "\n  | ") + "\n"
}

// How much room text may leave: more would push the rest of it out of sight.
const (
	maxEmptyLines = 3
	maxBlanks     = 100
)

// fold says of longer runs of blanks and of empty lines how long they are.
func fold(s string) string {
	var out []string
	empty := 0
	end := func() {
		if empty > maxEmptyLines {
			out = append(out, fmt.Sprintf("[… %d empty lines …]", empty))
		} else {
			out = append(out, make([]string, empty)...)
		}
		empty = 0
	}
	for _, line := range strings.Split(s, "\n") {
		if strings.Trim(line, " \t") == "" {
			empty++
			continue
		}
		end()
		out = append(out, foldBlanks(line))
	}
	end()
	return strings.Join(out, "\n")
}

func foldBlanks(line string) string {
	var b strings.Builder
	for line != "" {
		rest := strings.TrimLeft(line, " \t")
		if n := len(line) - len(rest); n > maxBlanks {
			fmt.Fprintf(&b, " [… %d blanks …] ", n)
		} else {
			b.WriteString(line[:n])
		}
		n := strings.IndexAny(rest, " \t")
		if n < 0 {
			n = len(rest)
		}
		b.WriteString(rest[:n])
		line = rest[n:]
	}
	return b.String()
}

// shorten keeps the beginning and the end of a text that is longer than max
// bytes, and says how much is left out.
func shorten(s string, max int) (text string, cut bool) {
	if len(s) <= max {
		return s, false
	}
	head, tail := max*2/3, len(s)-max/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d of %d bytes are left out here …]\n%s", s[:head], tail-head, len(s), s[tail:]), true
}
