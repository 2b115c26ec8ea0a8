package importer

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"github.com/tailscale/hujson"

	"github.com/llmdo/workshop/diag"
)

// parseJSON reads JSON with comments and trailing commas, as editors write it.
func parseJSON(s *source) (*node, *diag.Diagnostic) {
	data := s.data
	if len(data) > MaxSize {
		return nil, s.invalid(place{}, fmt.Sprintf("the file has %d bytes, more than %d", len(data), MaxSize), "")
	}
	if at, deep := tooDeep(data); deep {
		return nil, s.invalid(place{from: at, to: at + 1}, fmt.Sprintf("the file nests deeper than %d levels", maxDepth), "")
	}
	v, err := hujson.Parse(data)
	if err != nil {
		return nil, s.invalid(placeOf(s, err), "not valid JSON: "+reasonOf(err), "correct it: comments and trailing commas are allowed")
	}
	b := &jsonTree{left: maxNodes}
	n := b.build(&v)
	if b.left < 0 {
		return nil, s.invalid(place{}, fmt.Sprintf("the file has more than %d values", maxNodes), "")
	}
	return n, nil
}

// tooDeep looks for nesting that the parser would follow by calls of its own.
func tooDeep(data []byte) (at int, deep bool) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(data) && data[i+1] == '/':
			for i < len(data) && data[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(data) && data[i+1] == '*':
			for i += 2; i+1 < len(data) && (data[i] != '*' || data[i+1] != '/'); i++ {
			}
			i++
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i, true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return 0, false
}

// lineColumn is how the parser names a place.
var lineColumn = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^hujson: line (\d+), column (\d+): `) })

func placeOf(s *source, err error) place {
	m := lineColumn().FindStringSubmatch(err.Error())
	if m == nil {
		return place{}
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	if line < 1 || line > len(s.lines) {
		return place{}
	}
	at := s.lines[line-1] + column - 1
	return place{from: at, to: at + 1}
}

func reasonOf(err error) string {
	message := err.Error()
	return message[len(lineColumn().FindString(message)):]
}

// jsonTree turns the parser's values into nodes.
type jsonTree struct{ left int }

func (b *jsonTree) build(v *hujson.Value) *node {
	n := &node{at: place{from: v.StartOffset, to: v.EndOffset}}
	if b.left--; b.left < 0 {
		return n
	}
	switch x := v.Value.(type) {
	case hujson.Literal:
		switch x.Kind() {
		case '"':
			n.kind, n.text = text, x.String()
		case '0':
			n.kind, n.text = number, string(x)
		case 't', 'f':
			n.kind, n.text = boolean, string(x)
		}
	case *hujson.Array:
		n.kind = list
		for i := range x.Elements {
			n.items = append(n.items, b.build(&x.Elements[i]))
		}
	case *hujson.Object:
		n.kind = mapping
		for i := range x.Members {
			m := &x.Members[i]
			key, _ := m.Name.Value.(hujson.Literal)
			n.pairs = append(n.pairs, pair{key.String(), place{from: m.Name.StartOffset, to: m.Name.EndOffset}, b.build(&m.Value)})
		}
		n.pairs = lastOf(n.pairs)
	}
	return n
}
