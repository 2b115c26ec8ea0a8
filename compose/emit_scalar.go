package compose

import (
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// appendPlain writes a scalar without quotes where every YAML reader takes it
// for the same string, and in double quotes otherwise. The plain form is
// limited to what can't be read as anything else by YAML 1.1 or 1.2, in block
// and in flow context: a letter, dot-slash or slash first, then letters,
// digits and a few signs, and none of the words that mean a boolean or null.
func appendPlain(b []byte, s string) []byte {
	if isPlain(s) {
		return append(b, s...)
	}
	return appendQuoted(b, s)
}

func isPlain(s string) bool {
	if s == "" || !(isLetter(s[0]) || s[0] == '/' || (s[0] == '.' && len(s) > 1 && (s[1] == '/' || s[1] == '.'))) {
		return false
	}
	for i := 1; i < len(s); i++ {
		c := s[i]
		switch {
		case isLetter(c), c >= '0' && c <= '9', c == '_', c == '-', c == '.', c == '/', c == '@', c == '+', c == '=':
		default:
			return false
		}
	}
	return !reservedWords[lower(s)]
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// reservedWords are booleans and nulls of YAML 1.1 in lower case.
var reservedWords = map[string]bool{
	"y": true, "yes": true, "n": true, "no": true, "true": true, "false": true, "on": true, "off": true, "null": true,
}

// lower is the word in lower case if it is short enough to be reserved.
func lower(s string) string {
	if len(s) > 5 {
		return ""
	}
	var w [5]byte
	for i := range len(s) {
		w[i] = s[i]
		if s[i] >= 'A' && s[i] <= 'Z' {
			w[i] |= 0x20
		}
	}
	return string(w[:len(s)])
}

// isQuotedText reports whether text is printable ASCII with double quotes.
func isQuotedText(s string) bool {
	quotes := false
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
		quotes = quotes || s[i] == '"'
	}
	return quotes
}

const hexDigits = "0123456789abcdef"

// appendQuoted writes a double-quoted scalar. Everything that a reader might
// fold, strip or refuse is escaped; bytes that are not UTF-8 become U+FFFD, as
// YAML can't carry them. Plain text with quotes in it, such as JSON, is in
// single quotes: it is to be read by people.
func appendQuoted(b []byte, s string) []byte {
	if isQuotedText(s) {
		b = append(b, '\'')
		b = append(b, strings.ReplaceAll(s, "'", "''")...)
		return append(b, '\'')
	}
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r < ' ' || (r >= 0x7f && r < 0xa0):
			b = append(b, '\\', 'x', hexDigits[r>>4], hexDigits[r&15])
		case !yamltext.Shown(r) || (r >= 0xfff0 && r <= 0xffff && r != utf8.RuneError):
			b = append(b, yamltext.Escape(r)...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
