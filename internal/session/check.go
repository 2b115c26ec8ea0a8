package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/llmdo/workshop/tool"
)

// ArgumentsError says what is wrong with the arguments of a call. Nothing was
// executed.
type ArgumentsError struct {
	Tool string
	// Problems are all that were found, each with the argument that it is about.
	Problems []string
}

func (e *ArgumentsError) Error() string {
	if len(e.Problems) == 1 {
		return fmt.Sprintf("the arguments of %s are wrong: %s", e.Tool, e.Problems[0])
	}
	return fmt.Sprintf("the arguments of %s are wrong:\n- %s", e.Tool, strings.Join(e.Problems, "\n- "))
}

// maxProblems that are told of one call.
const maxProblems = 20

// checkArguments compares the arguments of one of our tools with its schema and
// tells all that is wrong. The toolbox checks again: it trusts nobody.
func checkArguments(name string, s schema, args json.RawMessage) error {
	var keys map[string]json.RawMessage
	if err := tool.Decode(args, &keys); err != nil { // an object, and no key twice
		return &ArgumentsError{Tool: name, Problems: []string{err.Error()}}
	}
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return &ArgumentsError{Tool: name, Problems: []string{err.Error()}}
	}
	c := &checker{}
	c.check("", s.is, v)
	if o, ok := v.(map[string]any); ok && name == tool.Shell {
		c.shell(o)
	}
	if len(c.problems) == 0 {
		return nil
	}
	return &ArgumentsError{Tool: name, Problems: c.problems}
}

// checker knows those keywords that our schemas have ([makeSchema]).
type checker struct{ problems []string }

func (c *checker) add(at, format string, a ...any) {
	switch {
	case len(c.problems) > maxProblems:
		return
	case len(c.problems) == maxProblems:
		c.problems = append(c.problems, "and more")
		return
	}
	text := fmt.Sprintf(format, a...)
	if at != "" {
		text = at + " " + text
	}
	c.problems = append(c.problems, text)
}

func (c *checker) check(at string, s *jsonschema.Schema, v any) {
	if got := kindOf(v); got != s.Type && !(s.Type == "number" && got == "integer") {
		c.add(at, "must be %s, not %s", article(s.Type), article(got))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		c.object(at, s, v)
	case []any:
		if s.MaxItems != nil && len(v) > *s.MaxItems {
			c.add(at, "has %d entries, more than %d", len(v), *s.MaxItems)
			return
		}
		for i, x := range v {
			c.check(fmt.Sprintf("%s[%d]", at, i), s.Items, x)
		}
	case string:
		if s.MaxLength != nil && utf8.RuneCountInString(v) > *s.MaxLength {
			c.add(at, "is longer than %d", *s.MaxLength)
		}
	case float64:
		if s.Minimum != nil && v < *s.Minimum {
			c.add(at, "is %v, less than %v", v, *s.Minimum)
		}
		if s.Maximum != nil && v > *s.Maximum {
			c.add(at, "is %.0f, more than %.0f", v, *s.Maximum)
		}
	}
}

func (c *checker) object(at string, s *jsonschema.Schema, v map[string]any) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			c.add("", "%s is missing", join(at, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p, ok := s.Properties[name]
		switch {
		case ok:
			c.check(join(at, name), p, v[name])
		case s.AdditionalProperties != nil && s.AdditionalProperties.Type != "":
			c.check(join(at, name), s.AdditionalProperties, v[name])
		default:
			c.add("", "there is no argument %q; it has %s", name, strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "))
		}
	}
}

// shell: exactly one of command and argv. The schema doesn't say it, for there
// are clients that refuse oneOf at the top.
func (c *checker) shell(args map[string]any) {
	line, _ := args["command"].(string)
	argv, _ := args["argv"].([]any)
	switch {
	case line == "" && len(argv) == 0:
		c.add("", "give either command or argv")
	case line != "" && len(argv) > 0:
		c.add("", "give either command or argv, not both")
	}
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// kindOf is the type of a value in words of JSON Schema.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
	}
	return "number"
}

func article(kind string) string {
	switch kind {
	case "integer", "array", "object":
		return "an " + kind
	case "null":
		return kind
	}
	return "a " + kind
}
