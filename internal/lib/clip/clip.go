// Package clip truncates text for messages. Truncated text ends in an ellipsis, which
// isn't counted; shorter text is returned unchanged.
package clip

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bytes returns the first n bytes of s, which may end inside a character: the
// caller quotes or encodes the result.
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}

// Text returns the first n bytes of s, without those that are not valid UTF-8.
func Text(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Runes returns the first n characters of s; each byte that is not valid UTF-8
// counts as one.
func Runes(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}

// Some lists a few of many names: "a, b, c and 5 more".
func Some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
}
