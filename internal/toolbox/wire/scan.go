package wire

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

var (
	errSyntax = errors.New("it is not valid JSON")
	errDepth  = errors.New("its JSON is nested deeper than 64")
)

// skipSpace returns the index of what follows the white space at i.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index after the JSON value at i. It accepts what
// [encoding/json.Valid] does, to the depth: the decoders after it take
// whatever depth they are given. Valid UTF-8 is the caller's to check.
func skipValue(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return 0, errSyntax
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '{' || c == '[':
		if depth >= MaxDepth {
			return 0, errDepth
		}
		if c == '[' {
			return skipArray(b, i, depth+1)
		}
		return skipObject(b, i, depth+1, nil)
	case c == '-' || c >= '0' && c <= '9':
		return skipNumber(b, i)
	case c == 't':
		return skipWord(b, i, "true")
	case c == 'f':
		return skipWord(b, i, "false")
	case c == 'n':
		return skipWord(b, i, "null")
	}
	return 0, errSyntax
}

func skipWord(b []byte, i int, word string) (int, error) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return 0, errSyntax
	}
	return i + len(word), nil
}

func skipArray(b []byte, i, depth int) (int, error) {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := skipValue(b, i, depth)
		if err != nil {
			return 0, err
		}
		i = skipSpace(b, end)
		switch {
		case i < len(b) && b[i] == ',':
			i = skipSpace(b, i+1)
		case i < len(b) && b[i] == ']':
			return i + 1, nil
		default:
			return 0, errSyntax
		}
	}
}

// skipObject calls field, if it isn't nil, with each key as it is written
// (between its quotes, escapes unread) and each value.
func skipObject(b []byte, i, depth int, field func(key, value []byte) error) (int, error) {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return 0, errSyntax
		}
		end, err := skipString(b, i)
		if err != nil {
			return 0, err
		}
		key := b[i+1 : end-1]
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return 0, errSyntax
		}
		i = skipSpace(b, i+1)
		if end, err = skipValue(b, i, depth); err != nil {
			return 0, err
		}
		if field != nil {
			if err := field(key, b[i:end:end]); err != nil {
				return 0, err
			}
		}
		i = skipSpace(b, end)
		switch {
		case i < len(b) && b[i] == ',':
			i = skipSpace(b, i+1)
		case i < len(b) && b[i] == '}':
			return i + 1, nil
		default:
			return 0, errSyntax
		}
	}
}

// skipString reads eight bytes at a time where none of them means anything:
// most of what is carried is text of files and programs.
func skipString(b []byte, i int) (int, error) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i++
	for {
		for i+8 <= len(b) {
			v := binary.LittleEndian.Uint64(b[i:])
			quote, slash := v^('"'*ones), v^('\\'*ones)
			// The high bit of a byte is set where it is a quote, a backslash or
			// below 0x20. A borrow may set wrong ones, but only above a right one.
			hit := ((quote-ones)&^quote | (slash-ones)&^slash | (v-0x20*ones)&^v) & highs
			if hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			return 0, errSyntax
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c < 0x20:
			return 0, errSyntax
		case c != '\\':
			i++ // of the last eight
		case i+1 < len(b) && b[i+1] == 'n':
			i += 2
		default:
			n, err := skipEscape(b, i)
			if err != nil {
				return 0, err
			}
			i = n
		}
	}
}

func skipEscape(b []byte, i int) (int, error) {
	if i+1 >= len(b) {
		return 0, errSyntax
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
		if i+6 > len(b) {
			return 0, errSyntax
		}
		for _, c := range b[i+2 : i+6] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return 0, errSyntax
			}
		}
		return i + 6, nil
	}
	return 0, errSyntax
}

func skipNumber(b []byte, i int) (int, error) {
	digits := func() bool {
		start := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > start
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return 0, errSyntax
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return 0, errSyntax
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return 0, errSyntax
		}
	}
	return i, nil
}

// tooDeep reports whether valid JSON is nested deeper than MaxDepth.
func tooDeep(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			end, err := skipString(b, i)
			if err != nil {
				return false
			}
			i = end - 1
		}
	}
	return false
}
