// Package shellline reads lines for a POSIX shell: whether a line is one plain
// command whose words are known before a shell has seen them, and which
// commands a line runs otherwise.
//
// What it says of a plain line must be what every shell does with it (dash,
// busybox, bash as sh): whatever a shell may expand, or read in another way
// than the next one, makes a line that isn't plain.
package shellline

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// MaxLine is the length, in bytes, of the longest line that is read.
const MaxLine = 64 << 10

// unquoted are the bytes that mean themselves outside of quotes, anywhere in a
// word (XCU 2.2, and what bash and zsh add to it). A byte beyond ASCII isn't
// one: in some locales it is a blank.
const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:@%+=^"

// keywords of POSIX (XCU 2.4) and of the shells that know more. A quoted one is
// an ordinary word; nobody needs it.
var keywords = []string{
	"if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in",
	"time", "function", "select", "coproc", "namespace", "repeat", "foreach", "nocorrect", "noglob", "end",
}

// ParseLine returns the words of a line that is one simple command of literal
// words, and nothing else: no operator, no redirection, no assignment, no
// expansion of any kind (quotes may keep one from being one), no comment, no
// end of a line outside of quotes. For any other line ok is false.
func ParseLine(line string) (argv []string, ok bool) {
	if len(line) > MaxLine || !utf8.ValidString(line) {
		return nil, false
	}
	words, ok := scan(line)
	if !ok || len(words) == 0 || words[0].text == "" || slices.Contains(keywords, words[0].text) {
		return nil, false
	}
	if strings.Contains(words[0].text, "=") && !words[0].quoted {
		return nil, false // an assignment
	}
	for _, w := range words {
		argv = append(argv, w.text)
	}
	// A second reader has to see the same.
	if other, ok := parsed(line); !ok || !slices.Equal(argv, other) {
		return nil, false
	}
	return argv, true
}

type word struct {
	text   string
	quoted bool // in part
}

// scan reads blanks, unquoted bytes, quotes and backslashes (XCU 2.2.1-2.2.3).
func scan(line string) (words []word, ok bool) {
	var text strings.Builder
	in, quoted := false, false
	end := func() {
		if in {
			words = append(words, word{text.String(), quoted})
		}
		text.Reset()
		in, quoted = false, false
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == ' ' || c == '\t':
			end()
			continue
		case c == '\'':
			n := strings.IndexByte(line[i+1:], '\'')
			if n < 0 || !printing(line[i+1:i+1+n]) {
				return nil, false
			}
			text.WriteString(line[i+1 : i+1+n])
			i += n + 1
			quoted = true
		case c == '"':
			n := doubleQuoted(line[i+1:], &text)
			if n < 0 {
				return nil, false
			}
			i += n
			quoted = true
		case c == '\\':
			if i+1 >= len(line) || line[i+1] <= ' ' && line[i+1] != ' ' || line[i+1] >= 0x7f {
				return nil, false
			}
			i++
			text.WriteByte(line[i])
			quoted = true
		case strings.IndexByte(unquoted, c) >= 0:
			text.WriteByte(c)
		default:
			return nil, false
		}
		in = true
	}
	end()
	return words, true
}

// doubleQuoted writes the text of a quote that begins before s and returns how
// many bytes of s it takes, with the closing quote; -1 where a shell would
// expand something, or the quote doesn't end.
func doubleQuoted(s string, text *strings.Builder) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return i + 1
		case '$', '`':
			return -1
		case '\\':
			if i+1 >= len(s) || s[i+1] == '\n' {
				return -1
			}
			// Before any other character the backslash stays (XCU 2.2.3).
			if i++; strings.IndexByte("$`\"\\", s[i]) < 0 {
				text.WriteByte('\\')
			}
			if !printing(s[i : i+1]) {
				return -1
			}
			text.WriteByte(s[i])
		default:
			if !printing(s[i : i+1]) {
				return -1
			}
			text.WriteByte(c)
		}
	}
	return -1
}

// printing reports whether quoted text has no control characters but tabs and ends
// of lines: shells use some for themselves.
func printing(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0x7f })
}

// parsed is what the shell parser makes of a line.
func parsed(line string) (argv []string, ok bool) {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX), syntax.KeepComments(true)).Parse(strings.NewReader(line), "")
	if err != nil || len(f.Stmts) != 1 || len(f.Last) > 0 {
		return nil, false
	}
	s := f.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Coprocess || s.Disown || s.Semicolon.IsValid() ||
		len(s.Redirs) > 0 || len(s.Comments) > 0 || len(call.Assigns) > 0 {
		return nil, false
	}
	for _, w := range call.Args {
		text, literal := textOf(w)
		if !literal {
			return nil, false
		}
		argv = append(argv, text)
	}
	return argv, true
}
