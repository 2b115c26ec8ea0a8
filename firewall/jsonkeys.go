package firewall

import (
	"bytes"
	"fmt"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// maxDepth bounds nesting; a policy has five levels.
const maxDepth = 16

// uniqueKeys refuses objects in which a key stands twice, or otherwise than
// EncodePolicy writes it: encoding/json takes the last one and ignores case, so
// two readers could see different policies. data is valid JSON already; a
// scanner of its own makes this cheaper than the tokens of encoding/json by a
// factor of ten, which counts with 10,000 names.
func uniqueKeys(data []byte) error {
	var stack [maxDepth][]string // the keys seen so far, by level
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth == maxDepth {
				return fmt.Errorf("nested deeper than %d levels", maxDepth-1)
			}
			stack[depth] = stack[depth][:0]
		case '}', ']':
			depth--
		case '"':
			end := stringEnd(data, i+1)
			if next := bytes.TrimLeft(data[end+1:], " \t\r\n"); len(next) > 0 && next[0] == ':' {
				if err := addKey(&stack[depth], string(data[i+1:end])); err != nil {
					return err
				}
			}
			i = end
		}
	}
	return nil
}

// stringEnd returns the position of the quote that ends the string which
// begins at i.
func stringEnd(data []byte, i int) int {
	for i < len(data)-1 && data[i] != '"' {
		if data[i] == '\\' {
			i++
		}
		i++
	}
	return min(i, len(data)-1)
}

// addKey adds a key to those of an object; unknown keys were refused before,
// so there are never many.
func addKey(keys *[]string, key string) error {
	for _, c := range []byte(key) {
		if c != '_' && (c < 'a' || c > 'z') {
			return fmt.Errorf("the key %q is unknown; keys are in lower case", clip.Bytes(key, shown))
		}
	}
	for _, k := range *keys {
		if k == key {
			return fmt.Errorf("the key %q is there twice", clip.Bytes(key, shown))
		}
	}
	*keys = append(*keys, key)
	return nil
}
