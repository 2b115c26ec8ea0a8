package wire

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// fault is a desync: what the other side did that the protocol doesn't have.
type fault struct {
	code int
	text string
}

func (f *fault) Error() string { return f.text }

func faultf(code int, format string, a ...any) *fault {
	return &fault{code, fmt.Sprintf(format, a...)}
}

// envelope is one JSON-RPC message, its parts unread.
type envelope struct {
	id     uint32 // 0: none
	null   bool   // id is null
	method string
	params json.RawMessage
	result json.RawMessage
	err    json.RawMessage
}

// Bits of the keys that an envelope had.
const (
	hasVersion = 1 << iota
	hasID
	hasMethod
	hasParams
	hasResult
	hasError
)

// parseEnvelope reads a message. It is strict: a key that JSON-RPC doesn't
// have, or that is given twice, could mean one thing here and another to
// the next reader.
func parseEnvelope(b []byte) (envelope, *fault) {
	var e envelope
	seen := 0
	i := skipSpace(b, 0)
	switch {
	case i < len(b) && b[i] == '[':
		return e, faultf(CodeInvalidRequest, "a message is a batch, which isn't taken: send one object a message")
	case i >= len(b) || b[i] != '{':
		return e, faultf(CodeParse, "a message is not a JSON object")
	case !utf8.Valid(b):
		return e, faultf(CodeParse, "a message isn't UTF-8")
	}
	end, err := skipObject(b, i, 1, func(key, value []byte) error {
		bit, err := e.set(key, value)
		if err == nil && seen&bit != 0 {
			err = faultf(CodeInvalidRequest, "a message has %q twice", key)
		}
		seen |= bit
		return err
	})
	if err == nil && skipSpace(b, end) != len(b) {
		err = errSyntax
	}
	if f, ok := err.(*fault); ok {
		return e, f
	} else if err != nil {
		return e, faultf(CodeParse, "a message can't be read: %v", err)
	}
	return e, e.check(seen)
}

// set takes one key of the envelope.
func (e *envelope) set(key, value []byte) (bit int, err error) {
	switch string(key) {
	case "jsonrpc":
		if string(value) != `"2.0"` {
			return 0, faultf(CodeInvalidRequest, `a message's "jsonrpc" isn't "2.0"`)
		}
		return hasVersion, nil
	case "id":
		e.null = string(value) == "null"
		if e.id = parseID(value); e.id == 0 && !e.null {
			return 0, faultf(CodeInvalidRequest, "a message's id is not a number from 1 to 4294967295")
		}
		return hasID, nil
	case "method":
		if value[0] == '"' {
			e.method = string(value[1 : len(value)-1])
		}
		if !isMethod(e.method) {
			return 0, faultf(CodeInvalidRequest, "a message's method is not a string of 1 to 254 plain characters")
		}
		return hasMethod, nil
	case "params":
		e.params = value
		return hasParams, nil
	case "result":
		e.result = value
		return hasResult, nil
	case "error":
		e.err = value
		return hasError, nil
	}
	return 0, faultf(CodeInvalidRequest, "a message has a key that JSON-RPC 2.0 doesn't: %.40q", key)
}

// isMethod reports whether s can name a method: what needs no escape in JSON.
func isMethod(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return len(s) > 0 && len(s) < 255
}

// check wants a request, a notification or an answer, and nothing of two.
func (e *envelope) check(seen int) *fault {
	switch seen {
	case hasVersion | hasID | hasMethod, hasVersion | hasID | hasMethod | hasParams,
		hasVersion | hasMethod, hasVersion | hasMethod | hasParams, hasVersion | hasID | hasResult:
		if !e.null {
			return nil
		}
	case hasVersion | hasID | hasError:
		return nil
	}
	return faultf(CodeInvalidRequest, "a message is not a request, notification or response of JSON-RPC 2.0")
}

// parseID reads the id of a call; 0 where it is none.
func parseID(b []byte) uint32 {
	if len(b) == 0 || len(b) > 10 || b[0] == '0' {
		return 0
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	if n > 1<<32-1 {
		return 0
	}
	return uint32(n)
}

// callOf reads the id of the call that a notification's parameters name; 0
// where they name none.
func callOf(params []byte) (uint32, *fault) {
	var id uint32
	n := 0
	if len(params) == 0 || params[0] != '{' {
		return 0, nil
	}
	// The parameters were walked once, as a part of their message.
	_, _ = skipObject(params, 0, 1, func(key, value []byte) error {
		if string(key) == "id" {
			id = parseID(value)
			n++
		}
		return nil
	})
	if n > 1 {
		return 0, faultf(CodeInvalidRequest, "a notification names its call twice")
	}
	return id, nil
}
