package firewall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// maxDepth bounds nesting; a policy has four levels.
const maxDepth = 16

// uniqueKeys refuses objects in which a key stands twice, or in other case
// than it is written by EncodePolicy: encoding/json takes the last one and
// ignores case, so two readers could see different policies.
func uniqueKeys(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	type level struct {
		keys map[string]bool // nil in arrays
		key  bool            // a key comes next
	}
	var stack []level
	for {
		t, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		top := len(stack) - 1
		if s, ok := t.(string); ok && top >= 0 && stack[top].key {
			if stack[top].keys[s] {
				return fmt.Errorf("the key %q is there twice", clip(s))
			}
			for _, c := range []byte(s) {
				if c >= 'A' && c <= 'Z' {
					return fmt.Errorf("the key %q is unknown; keys are in lower case", clip(s))
				}
			}
			stack[top].keys[s] = true
			stack[top].key = false
			continue
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if len(stack) == maxDepth {
				return fmt.Errorf("nested deeper than %d levels", maxDepth)
			}
			l := level{}
			if t == json.Delim('{') {
				l = level{keys: map[string]bool{}, key: true}
			}
			stack = append(stack, l)
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
			if top--; top >= 0 && stack[top].keys != nil {
				stack[top].key = true
			}
		default:
			if top >= 0 && stack[top].keys != nil {
				stack[top].key = true
			}
		}
	}
}
