package facts

import (
	"iter"
	"strings"
)

// gitConfig yields the variables of a git configuration file (git-config(1)) as
// section.name, without subsections: the caller looks for file names, and watching a
// file too many is harmless. Where the section isn't plain it is empty. It never fails:
// a file that git would refuse is read as far as possible.
func gitConfig(text string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for v := range gitVariables(text) {
			if !yield(v.section+"."+v.name, v.value) {
				return
			}
		}
	}
}

// gitVariable is a variable with its section, in lower case, and the quoted subsection.
type gitVariable struct{ section, sub, name, value string }

// gitVariables yields the variables of a file, as [gitConfig].
func gitVariables(text string) iter.Seq[gitVariable] {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	return func(yield func(gitVariable) bool) {
		section, sub := "", ""
		for len(text) > 0 {
			c := text[0]
			switch {
			case c == '[':
				section = sectionName(text[1:])
				sub, text = subsection(text[1:])
			case isLetter(c):
				var name, value string
				name, value, text = variable(text)
				if !yield(gitVariable{section, sub, name, value}) {
					return
				}
			case isSpace(c):
				text = text[1:]
			default: // a comment, or something that git doesn't read
				_, text, _ = strings.Cut(text, "\n")
			}
		}
	}
}

// sectionName reads the name of a section's header, in lower case; "" for one that has
// its subsection after a point.
func sectionName(text string) string {
	name := text[:len(text)-len(strings.TrimLeftFunc(text, isKey))]
	if rest := text[len(name):]; !strings.HasPrefix(rest, "]") && !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "\t") {
		return ""
	}
	return strings.ToLower(name)
}

// subsection reads the quoted subsection of a section's header, which may contain a
// bracket, and returns what is after the header.
func subsection(text string) (sub, rest string) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n', c == ']' && !quoted:
			return b.String(), text[i+1:]
		case c == '"':
			quoted = !quoted
		case quoted:
			if c == '\\' && i+1 < len(text) {
				i++
			}
			b.WriteByte(text[i])
		}
	}
	return "", ""
}

// variable reads a name, in lower case, and its value, "" if it has none. A value ends
// at a NUL: git takes it for a string of C.
func variable(text string) (name, value, rest string) {
	after := strings.TrimLeftFunc(text, isKey)
	name, text = strings.ToLower(text[:len(text)-len(after)]), strings.TrimLeft(after, " \t")
	if !strings.HasPrefix(text, "=") {
		_, rest, _ = strings.Cut(text, "\n")
		return name, "", rest
	}
	value, rest = configValue(text[1:])
	value, _, _ = strings.Cut(value, "\x00")
	return name, value, rest
}

// configValue reads a value to the end of its line, with continuation lines.
func configValue(text string) (value, rest string) {
	var b strings.Builder
	quoted, comment, kept := false, false, 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			return b.String()[:kept], text[i+1:]
		case comment:
			continue
		case !quoted && isSpace(c):
			if b.Len() > 0 {
				b.WriteByte(c)
			}
			continue // trailing space isn't kept
		case !quoted && (c == '#' || c == ';'):
			comment = true
			continue
		case c == '"':
			quoted = !quoted
			kept = b.Len()
			continue
		case c == '\\' && i+1 < len(text):
			i++
			switch c = text[i]; c {
			case '\n':
				continue
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			}
		}
		b.WriteByte(c)
		kept = b.Len()
	}
	return b.String()[:kept], ""
}

// isKey reports whether a character may be in the name of a section or a variable.
func isKey(r rune) bool {
	return r < 128 && (isLetter(byte(r)) || r == '-' || '0' <= r && r <= '9')
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
