package mcpclient

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean removes control characters and invisible ones that order or hide text,
// and cuts a text to a number of bytes.
func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= most {
		return s
	}
	const mark = "…"
	cut := max(0, most-len(mark))
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

// word reports that a text consists of 1 to most characters of names of tools.
func word(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
