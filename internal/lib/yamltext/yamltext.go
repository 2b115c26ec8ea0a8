// Package yamltext finds what lets YAML mean something else than an editor or
// a diff shows of it (B41).
package yamltext

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Refused is a character that is not allowed in a file.
type Refused struct {
	At, Len       int // bytes
	Summary, Hint string
}

// Check finds the first character of data[from:] that is not allowed in YAML which
// people read: what isn't UTF-8, control characters, ends of lines that editors
// don't show as such, what turns or hides text.
func Check(data []byte, from int) (Refused, bool) {
	for at := from; at < len(data); {
		r, n := utf8.DecodeRune(data[at:])
		refused := func(hint, format string, what any) (Refused, bool) {
			return Refused{At: at, Len: n, Summary: fmt.Sprintf(format, what), Hint: hint}, true
		}
		switch {
		case r == utf8.RuneError && n <= 1:
			return refused("save the file as UTF-8 text", "the byte 0x%02x is not UTF-8", data[at])
		case r == '\r' && (at+1 == len(data) || data[at+1] != '\n'), r == 0x85, r == 0x2028, r == 0x2029:
			// YAML ends lines there, editors don't: what follows a # would be
			// keys, and places would be wrong.
			return refused("end lines with LF or CRLF", "the line separator U+%04X is not allowed here", r)
		case r < 0x20 && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0, r == 0xfeff:
			return refused("remove it, or write it as an escape in double quotes", "the character U+%04X is not allowed in YAML", r)
		case Deceives(r):
			return refused(fmt.Sprintf(`remove it, or write it as an escape in double quotes: "%s"`, Escape(r)), "the character U+%04X turns or hides text: what the file says isn't what is shown", r)
		}
		at += n
	}
	return Refused{}, false
}

// Deceives reports whether a character turns the order of the text around it, or
// isn't shown at all. Joiners (U+200C, U+200D) and variation selectors are allowed:
// words of some scripts, and emoji, have them.
func Deceives(r rune) bool {
	switch {
	case r == 0x200c, r == 0x200d:
		return false
	case unicode.Is(unicode.Cf, r):
		// Soft hyphen, marks and overrides of direction, zero-width space, word
		// joiner, tags. Signs of numbers in Arabic script are seen.
		return !(r >= 0x600 && r <= 0x605 || r == 0x6dd || r == 0x70f || r == 0x890 || r == 0x891 || r == 0x8e2)
	}
	return r == 0x034f || r == 0x115f || r == 0x1160 || r == 0x17b4 || r == 0x17b5 || r == 0x180e || r == 0x3164 || r == 0xffa0
}

// Shown reports whether a character is shown as what it is: text, a tab, a line
// feed; no control character, no other end of a line, and nothing that deceives.
func Shown(r rune) bool {
	switch {
	case r >= 0x20 && r < 0x7f, r == '\t', r == '\n':
		return true
	case r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff:
		return false
	}
	return !Deceives(r)
}

// Escape is a character as double quotes have it.
func Escape(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08X`, r)
	}
	return fmt.Sprintf(`\u%04X`, r)
}
