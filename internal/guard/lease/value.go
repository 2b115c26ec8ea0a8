package lease

import (
	"errors"
	"fmt"
)

// Value is a secret, as a header's value. Printing it shows none of it; [Value.Forget]
// clears it.
type Value []byte

var errValue = errors.New("the value is not 1 to 8192 visible characters of ASCII, with blanks between them only")

// Check returns an error, without any of it, if it can't be a header's value.
func (v Value) Check() error {
	if len(v) == 0 || len(v) > MaxValue || v[0] == ' ' || v[len(v)-1] == ' ' {
		return errValue
	}
	for _, c := range v {
		if c < ' ' || c > '~' {
			return errValue
		}
	}
	return nil
}

// Forget clears the value.
func (v Value) Forget() { clear(v) }

// Format implements fmt.Formatter.
func (v Value) Format(s fmt.State, _ rune) { fmt.Fprint(s, "(hidden)") }

// MarshalText makes it a string in messages.
func (v Value) MarshalText() ([]byte, error) { return v, v.Check() }

// unquote returns the value of a JSON string, in memory of its own. Unlike package json it
// leaves no copy behind.
func unquote(b []byte) (Value, error) {
	if len(b) < 2 || b[0] != '"' {
		return nil, errValue
	}
	b = b[1 : len(b)-1]
	out := make(Value, 0, len(b))
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '\\' { // what it is followed by, package json has checked
			switch i++; b[i] {
			case '"', '\\', '/':
				c = b[i]
			case 'u':
				n, ok := hexByte(b[i+1 : i+5])
				if !ok {
					out.Forget()
					return nil, errValue
				}
				c, i = n, i+4
			default:
				out.Forget()
				return nil, errValue
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// hexByte reads 4 hexadecimal digits of a character below 0x80.
func hexByte(b []byte) (byte, bool) {
	n := 0
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | int(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 | int(c|0x20-'a'+10)
		}
	}
	return byte(n), n < 0x80
}
