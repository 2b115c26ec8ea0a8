package worker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// entry is one word of a tool list: `Read`, `Bash(git:*)`. From and To are its
// bytes in the text that was split.
type entry struct {
	name, limit string
	limited     bool // has parentheses
	from, to    int
}

// listError is a place in a tool list that can't be read.
type listError struct {
	from, to      int
	summary, hint string
	bare          string // the list without its quotes, where they are the mistake
}

// splitTools cuts a tool list into entries. Commas and blanks separate, except
// inside parentheses, which may nest. A list that can't be read whole gives no
// entry at all: `Bash (git:*)` must not become an unlimited Bash.
func splitTools(s string) ([]entry, *listError) {
	var out []entry
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRuneInString(s[at:])
		if separates(r) {
			at += n
			continue
		}
		e := entry{from: at}
		at += strings.IndexFunc(s[at:]+",", func(r rune) bool { return separates(r) || r == '(' || r == ')' })
		e.name = s[e.from:at]
		if at < len(s) && s[at] == ')' {
			return nil, &listError{at, at + 1, "a parenthesis is closed here that nobody opened", "remove it, or write Tool(limit)", ""}
		}
		if at < len(s) && s[at] == '(' {
			if e.name == "" {
				return nil, &listError{at, at + 1, "a parenthesis without the name of a tool before it", "write it without a blank: " + joined(out, s, at), ""}
			}
			end := closing(s, at)
			if end < 0 {
				return nil, &listError{at, len(s), "this parenthesis isn't closed", "write " + e.name + "(limit)", ""}
			}
			e.limit, e.limited, at = strings.TrimSpace(s[at+1:end]), true, end+1
			if at < len(s) {
				if r, _ := utf8.DecodeRuneInString(s[at:]); !separates(r) {
					if bare := unquoted(s); bare != s {
						return nil, &listError{e.from, at + 1, "quotes around an entry are part of it", "write it without quotes", bare}
					}
					return nil, &listError{e.from, at + 1, "two entries without a comma between them", "separate them by a comma", ""}
				}
			}
		}
		e.to = at
		out = append(out, e)
	}
	return out, nil
}

// joined is the entry that was meant where a blank precedes the limit.
func joined(before []entry, s string, open int) string {
	end := closing(s, open)
	if len(before) == 0 || end < 0 || before[len(before)-1].limited {
		return "Tool(limit)"
	}
	return before[len(before)-1].name + s[open:end+1]
}

// unquoted is a list without the quotes that aren't in parentheses.
func unquoted(s string) string {
	depth := 0
	return strings.Map(func(r rune) rune {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case '"', '\'':
			if depth == 0 {
				return -1
			}
		}
		return r
	}, s)
}

func separates(r rune) bool { return r == ',' || unicode.IsSpace(r) }

// closing returns the byte of the parenthesis that closes the one at open, or -1.
func closing(s string, open int) int {
	depth := 0
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
