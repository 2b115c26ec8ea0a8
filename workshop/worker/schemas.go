package worker

import (
	"errors"
	"fmt"
	"regexp/syntax"

	"github.com/google/jsonschema-go/jsonschema"
)

// Limits of the schemas that a workshop's workers have together, each counted
// once (B60): what the library does for each part, and what an expression takes,
// are far more than their text.
const (
	maxSchemas       = 1 << 20 // bytes
	maxSchemaParts   = 20_000  // values
	maxSchemaPaths   = 4 << 20 // bytes of the places of all values
	maxPatterns      = 64 << 10
	maxPatternSteps  = 100_000 // with repetitions written out
	maxSchemasBefore = "; schemas count together, each once: write less, or split the workshop"
)

// Schemas are those that the workers of one workshop name. The zero value has
// none yet.
type Schemas struct {
	seen  map[string]compiledSchema
	spent schemaCost
}

type compiledSchema struct {
	data []byte
	err  error
}

// schemaCost is what schemas make of work.
type schemaCost struct{ bytes, parts, paths, patterns, steps int }

func (c *schemaCost) check() error {
	over := func(have, most int, what string) error {
		if have <= most {
			return nil
		}
		return fmt.Errorf("%d %s, more than %d%s", have, what, most, maxSchemasBefore)
	}
	return errors.Join(over(c.bytes, maxSchemas, "bytes"), over(c.parts, maxSchemaParts, "values"), over(c.paths, maxSchemaPaths, "bytes of places of values"),
		over(c.patterns, maxPatterns, "bytes of patterns"), over(c.steps, maxPatternSteps, "steps of patterns with their repetitions written out"))
}

// Compile checks that data is a JSON Schema which refers to nothing outside of
// itself, and gives it in a compact form.
func (s *Schemas) Compile(name string, data []byte) ([]byte, error) {
	if before, ok := s.seen[string(data)]; ok {
		return before.data, before.err
	}
	out, err := s.compile(name, data)
	if s.seen == nil {
		s.seen = map[string]compiledSchema{}
	}
	if len(data) <= MaxSchema {
		s.seen[string(data)] = compiledSchema{out, err}
	}
	return out, err
}

// spend counts the text of a schema, before anything is made of it.
func (s *Schemas) spend(data []byte) error {
	depth, parts, paths := weigh(data)
	if depth > maxSchemaDepth {
		return fmt.Errorf("it is nested deeper than %d", maxSchemaDepth)
	}
	s.spent.bytes += len(data)
	s.spent.parts += parts
	s.spent.paths += paths
	return s.spent.check()
}

// spendPatterns counts the expressions of a schema before one is compiled.
func (s *Schemas) spendPatterns(root *jsonschema.Schema) error {
	var patterns []string
	eachSchema(root, func(p *jsonschema.Schema) {
		if p.Pattern != "" {
			patterns = append(patterns, p.Pattern)
		}
		for pattern := range p.PatternProperties {
			patterns = append(patterns, pattern)
		}
	})
	for _, p := range patterns {
		s.spent.patterns += len(p)
	}
	if err := s.spent.check(); err != nil {
		return err
	}
	for _, p := range patterns {
		if re, err := syntax.Parse(p, syntax.Perl); err == nil { // else the library reports it
			s.spent.steps += steps(re)
		}
		if err := s.spent.check(); err != nil {
			return err
		}
	}
	return nil
}

// steps is about what an expression has once its repetitions are written out.
func steps(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/64
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, maxPatternSteps+1)
}

// weigh returns how deep the objects and lists of a JSON text nest, how many values
// it has, and the length of their JSON pointers together.
func weigh(data []byte) (depth, parts, paths int) {
	var open []int // lengths of the names on the way
	at, key := 0, 0
	begin, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			if text = !text; text {
				begin = i
			} else {
				key = i - begin
			}
		case text:
		case c == '{', c == '[':
			open = append(open, key)
			at += key
			key = 4 // a number of a list
			depth = max(depth, len(open))
			parts++
			paths += at + key
		case c == '}', c == ']':
			if n := len(open); n > 0 {
				at -= open[n-1]
				open = open[:n-1]
			}
		case c == ',':
			key = 4
			parts++
			paths += at + key
		}
	}
	return depth, parts, paths
}
