// Package plainjson encodes JSON without HTML escapes.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Marshal is [json.Marshal] without escapes of <, > and &.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil // which ends every value of an encoder
}
