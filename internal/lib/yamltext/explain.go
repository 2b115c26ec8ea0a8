package yamltext

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Mark is a place that the YAML library names: line and column, from 1.
type Mark struct{ Line, Column int }

// Slip is a mistake of indentation, quoting or brackets.
type Slip struct {
	Summary, Hint string
	At            Mark
	// Related is a second place, with what it is; the zero Mark is none.
	Related     Mark
	RelatedText string
}

// Explain says in words of people who write YAML what the library's message means
// at a place of the text; context is where it began to read what it couldn't end.
// The Summary is empty for messages that say nothing about how text is written.
func Explain(text []byte, message string, at, context Mark) Slip {
	t := page{lines: bytes.SplitN(text, []byte("\n"), max(at.Line, context.Line)+1), at: at, context: context}
	s := t.explain(message)
	if s.At.Line == 0 {
		s.At = at
	}
	return s
}

// page is the text with the places that the library names.
type page struct {
	lines       [][]byte // those until the places, and the rest
	at, context Mark
}

func (t page) explain(message string) Slip {
	has := func(part string) bool { return strings.Contains(message, part) }
	switch {
	case has("mapping values are not allowed"):
		return t.secondColon()
	case has("did not find expected key"), has("did not find expected '-' indicator"):
		return t.strayLine()
	case has("did not find expected <document start>"):
		return t.leftOfFirst()
	case has("could not find expected ':'"):
		return t.neitherKeyNorItem()
	case has("did not find expected ',' or "):
		return t.bracket()
	case has("unexpected end of stream"), has("unexpected document indicator"):
		if quote := t.char(t.context); quote == '"' || quote == '\'' {
			return Slip{Summary: fmt.Sprintf("the quote %c is not closed", quote), Hint: fmt.Sprintf("write %c at the end of the text", quote), At: t.context}
		}
	case has("cannot start any token"):
		word := t.rest(t.at)
		return Slip{Summary: fmt.Sprintf("text can't begin with %s", first(word)), Hint: "put quotes around it: " + quoted(shown(word))}
	case has("unknown anchor"):
		word, _, _ := strings.Cut(strings.TrimRight(t.rest(t.at), " ,]}"), ",")
		if strings.HasPrefix(word, "*.") || strings.HasPrefix(word, "**") || word == "*" {
			return Slip{Summary: fmt.Sprintf("text that begins with a star is read as an alias: %s", shown(word)), Hint: "put quotes around it: " + quoted(shown(word))}
		}
		return Slip{Summary: fmt.Sprintf("the alias %s has no anchor", shown(word)), Hint: fmt.Sprintf("write &%s before the value that it repeats, or quotes around text", strings.TrimPrefix(word, "*"))}
	case has("block sequence entries are not allowed"):
		return Slip{Summary: "a list with dashes can't begin on the line of its key", Hint: "write each `- ITEM` on a line of its own, or the list as [ITEM, ITEM]"}
	case has("did not find expected node content"):
		return Slip{Summary: "a value is missing", Hint: "write the value, or remove the comma or key before it"}
	case has("unknown escape character"):
		return Slip{Summary: "the backslash begins no known escape in double quotes", Hint: `write \\, or use single quotes`}
	case has("a comment without preceding whitespace"):
		return Slip{Summary: "a comment needs a space before the #", Hint: "write a space before it"}
	}
	return Slip{}
}

// secondColon is a colon where no key can be: after a value on its line, or on a
// line that is indented below a value.
func (t page) secondColon() Slip {
	line := t.line(t.at.Line)
	before := strings.TrimSuffix(line, t.rest(t.at))
	key, value, two := strings.Cut(line, ": ")
	if two && strings.Contains(before, ": ") {
		value = strings.TrimSpace(value)
		if len(value) > 120 {
			return Slip{Summary: "the value has a colon and a space, which begin another key", Hint: "put quotes around the value, or write one key on each line"}
		}
		return Slip{Summary: "the value has a colon and a space, which begin another key",
			Hint: fmt.Sprintf("write %s: %s, or one key on each line", strings.TrimLeft(key, " -"), quoted(value))}
	}
	n := t.previous(t.at.Line)
	if n == 0 {
		return Slip{Summary: "a key can't be here", Hint: "write each key on a line of its own, indented like its neighbours"}
	}
	outer := t.line(n)
	if pair := spaced(outer); pair != "" {
		return Slip{Summary: fmt.Sprintf("line %d has no space after its colon, so it is text and not a key", n), Hint: fmt.Sprintf("write `%s` in line %d", pair, n)}
	}
	return Slip{
		Summary: fmt.Sprintf("%s is indented below %s, which has a value already", subject(line), subject(outer)),
		Hint:    fmt.Sprintf("indent it by %s like line %d, or remove the value there", spaces(indent(outer)), n),
	}
}

// strayLine is a line that begins neither a key nor an item of what is open: its
// indentation fits nothing above, or something follows the end of a value.
func (t page) strayLine() Slip {
	line := t.line(t.at.Line)
	own := indent(line)
	if t.at.Column > own+1 {
		switch before := t.char(Mark{t.at.Line, t.at.Column - 1}); before {
		case '\'':
			return Slip{Summary: "text follows the closing quote", Hint: "write '' for a quote inside of single quotes, or use double quotes"}
		case '"':
			return Slip{Summary: "text follows the closing quote", Hint: `write \" for a quote inside of double quotes, or use single quotes`}
		}
		return Slip{Summary: "text follows the end of the value", Hint: "remove it, or put quotes around the whole value"}
	}
	isItem := strings.HasPrefix(line[own:], "-")
	if s, ok := t.outdented(own, isItem); ok {
		return s
	}
	best := 0
	for n, deepest := t.previous(t.at.Line), 1<<30; n > 0 && deepest > 0; n = t.previous(n) {
		above := t.line(n)
		depth := indent(above)
		if depth >= deepest {
			continue // closed again
		}
		deepest = depth
		switch item := strings.HasPrefix(above[depth:], "-"); {
		case depth == own && item != isItem:
			return between(line, n, isItem)
		case item == isItem && (best == 0 || distance(depth, own) < distance(indent(t.line(best)), own)):
			best = n
		}
	}
	if best == 0 {
		return Slip{Summary: fmt.Sprintf("%s is indented by %s, which fits no line above it", subject(line), spaces(own)), Hint: "indent the lines of one mapping or list alike"}
	}
	return Slip{
		Summary: fmt.Sprintf("%s is indented by %s, which fits no line above it", subject(line), spaces(own)),
		Hint:    fmt.Sprintf("indent it by %s like %s in line %d", spaces(indent(t.line(best))), subject(t.line(best)), best),
	}
}

// outdented is a line above that is indented less than those around it, which closed
// what a later line goes on with; own is the indentation of that.
func (t page) outdented(own int, isItem bool) (Slip, bool) {
	out := 0
	for n := t.previous(t.at.Line); n > 0; n = t.previous(n) {
		line := t.line(n)
		depth := indent(line)
		switch {
		case depth < own && out == 0:
			out = n
		case out > 0 && depth < own:
			return Slip{}, false
		case out > 0 && depth == own && strings.HasPrefix(line[depth:], "-") == isItem:
			return Slip{
				Summary: fmt.Sprintf("%s is indented by %s, less than the lines before and after it", subject(t.line(out)), spaces(indent(t.line(out)))),
				Hint:    fmt.Sprintf("indent it by %s like %s in line %d", spaces(own), subject(line), n),
				At:      Mark{out, indent(t.line(out)) + 1},
				Related: t.at, RelatedText: "this line fits no other above it",
			}, true
		}
	}
	return Slip{}, false
}

// between is an item among keys, or a key among items.
func between(line string, n int, isItem bool) Slip {
	if isItem {
		return Slip{Summary: fmt.Sprintf("a list item follows a key at the same indentation, in line %d", n),
			Hint: "write the key of the list on a line before it, such as `mounts:`"}
	}
	word := strings.TrimSpace(line)
	return Slip{Summary: fmt.Sprintf("%s follows a list item at the same indentation, in line %d", subject(line), n), Hint: "write `- " + shown(word) + "`, or indent it like the key of the list"}
}

// leftOfFirst is a line that is indented less than the first one of the file.
func (t page) leftOfFirst() Slip {
	line, first := t.line(t.at.Line), 1
	for n := t.at.Line; n > 0; n = t.previous(n) {
		first = n
	}
	if key(line) == "" || indent(line) >= indent(t.line(first)) {
		return Slip{Summary: "text follows the end of the value", Hint: "write one mapping, each key on a line of its own"}
	}
	return Slip{
		Summary: fmt.Sprintf("%s is indented less than %s in line %d, the first of the file", subject(line), subject(t.line(first)), first),
		Hint:    "begin the first line without spaces, and indent what is in it by two",
	}
}

// neitherKeyNorItem is a line without a colon and a space.
func (t page) neitherKeyNorItem() Slip {
	if t.context.Line == 0 {
		return Slip{Summary: "a colon is missing after the key", Hint: "write KEY: VALUE"}
	}
	word := strings.TrimSpace(t.line(t.context.Line))
	s := Slip{Summary: fmt.Sprintf("%s is neither a key with a value nor a list item", shown(word)), At: t.context}
	n := t.previous(t.context.Line)
	switch {
	case n > 0 && strings.HasPrefix(strings.TrimLeft(t.line(n), " "), "- "):
		s.Hint = "write `- " + shown(word) + "`"
	case strings.HasPrefix(word, "-") && len(word) > 1:
		s.Hint = "write a space after the dash: `- " + shown(word[1:]) + "`"
	case spaced(word) != "":
		s.Hint = "write a space after the colon: `" + spaced(word) + "`"
	default:
		s.Hint = "write `KEY: VALUE` or `- ITEM`"
	}
	return s
}

// bracket is a list or mapping in brackets that doesn't go on as it must.
func (t page) bracket() Slip {
	open := t.char(t.context)
	closing, found := byte(']'), t.char(t.at)
	if open == '{' {
		closing = '}'
	}
	if open != '{' && open != '[' {
		return Slip{Summary: "a comma or a closing bracket is missing", Hint: "close the list or mapping before the next key"}
	}
	if (found == '[' || found == '{') && t.char(Mark{t.at.Line, t.at.Column - 1}) == ':' {
		return Slip{Summary: fmt.Sprintf("a space is missing between the colon and %c", found), Hint: "write a space after each colon, as in {KEY: [ITEM, ITEM]}", Related: t.context, RelatedText: "in what begins here"}
	}
	if t.at.Line == t.context.Line && found != 0 && found != ']' && found != '}' {
		return Slip{Summary: fmt.Sprintf("a comma or %c is missing", closing), Hint: "write a comma between two entries", Related: t.context, RelatedText: "in what begins here"}
	}
	return Slip{Summary: fmt.Sprintf("the bracket %c is not closed", open), Hint: fmt.Sprintf("write %c at its end", closing),
		At: t.context, Related: t.at, RelatedText: "read until here"}
}

// line returns a line of the text without its end; "" beyond it.
func (t page) line(n int) string {
	if n < 1 || n > len(t.lines) {
		return ""
	}
	line, _, _ := bytes.Cut(t.lines[n-1], []byte("\n"))
	return strings.TrimRight(string(line), "\r")
}

// previous returns the number of the line before n that has more than a comment;
// 0: none.
func (t page) previous(n int) int {
	for n--; n > 0; n-- {
		if l := bytes.TrimSpace(t.lines[min(n, len(t.lines))-1]); len(l) > 0 && l[0] != '#' {
			break
		}
	}
	return max(n, 0)
}

// rest returns a line from a place on.
func (t page) rest(m Mark) string {
	line := []rune(t.line(m.Line))
	return strings.TrimSpace(string(line[min(max(m.Column-1, 0), len(line)):]))
}

// char returns the ASCII character at a place; 0: there is none.
func (t page) char(m Mark) byte {
	if line := []rune(t.line(m.Line)); m.Line > 0 && m.Column > 0 && m.Column <= len(line) && line[m.Column-1] < utf8.RuneSelf {
		return byte(line[m.Column-1])
	}
	return 0
}

const keyBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// key returns the key that a line begins with; "" if it begins with none.
func key(line string) string {
	name, after, found := strings.Cut(strings.TrimLeft(line, " -"), ":")
	if !found || after != "" && after[0] != ' ' || strings.Trim(name, keyBytes) != "" {
		return ""
	}
	return name
}

// spaced is KEY:VALUE with its space; "" for another line.
func spaced(line string) string {
	name, value, colon := strings.Cut(strings.TrimLeft(line, " -"), ":")
	if !colon || name == "" || value == "" || strings.HasPrefix(value, " ") || strings.HasPrefix(value, "//") || strings.Trim(name, keyBytes) != "" {
		return ""
	}
	return name + ": " + shown(value)
}

// subject is how messages call what a line begins.
func subject(line string) string {
	switch name := key(line); {
	case strings.HasPrefix(strings.TrimLeft(line, " "), "-"):
		return "the list item"
	case name != "":
		return "the key " + strconv.Quote(shown(name))
	}
	return "the text"
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func distance(a, b int) int { return max(a-b, b-a) }

func spaces(n int) string {
	if n == 1 {
		return "1 space"
	}
	return fmt.Sprintf("%d spaces", n)
}

func first(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

// quoted is text in quotes, as YAML reads them.
func quoted(s string) string {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, `"\`) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return `"` + s + `"`
}

func shown(s string) string { return clip.Runes(s, 60) }
