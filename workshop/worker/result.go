package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// MaxResult is the largest result that is checked, in bytes. As values, tiny
// parts take up to fifty times that.
const MaxResult = 4 << 20

// maxResultProblems are told of one result.
const maxResultProblems = 50

// CheckResult compares a worker's answer, which is JSON, with the worker's
// `result_type`. Everything that is wrong is told, in the order of the answer;
// name is how the file is called in what is told. The list is empty for an
// answer that is as it should be.
func CheckResult(schema []byte, name string, data []byte) diag.List {
	c := resultCheck{name: name, data: data}
	if len(data) > MaxResult {
		c.add(0, fmt.Sprintf("the result has more than %d bytes", MaxResult), "")
		return c.list
	}
	var root jsonschema.Schema
	err := checkSchema(schema)
	if err == nil {
		err = json.Unmarshal(schema, &root)
	}
	if err != nil {
		c.add(0, "the worker's result_type isn't a JSON Schema: "+err.Error(), "run `workshop validate`")
		return c.list
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		at := int64(len(data))
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = max(0, s.Offset-1)
		}
		hint := "the result is the JSON value alone"
		if bytes.HasPrefix(bytes.TrimSpace(data), []byte("```")) {
			hint = "remove the fence of backquotes around the JSON"
		}
		c.add(at, "not JSON: "+strings.TrimPrefix(err.Error(), "json: "), hint)
		return c.list
	}
	c.root, c.parts = &root, refersToDefinitions(schema)
	c.walk(&root, value, "")
	offsets := locate(data, c.pointers)
	for i, p := range c.pointers {
		c.list[i].Range = c.place(offsets[p])
	}
	sortfunc.Stable(c.list, func(a, b diag.Diagnostic) int { return a.Range.Start.Byte - b.Range.Start.Byte })
	return c.list
}

type resultCheck struct {
	name  string
	data  []byte
	root  *jsonschema.Schema
	parts bool // parts of the schema mean the same by themselves
	list  diag.List
	// pointers are those of the values that the list is about, as JSON pointers.
	pointers []string
	resolved map[*jsonschema.Schema]resolved
}

// resolved is a part of the schema, ready to be compared with many values.
type resolved struct {
	*jsonschema.Resolved
	err error
}

// refersToDefinitions reports whether every reference of a schema leads to $defs, so
// that it means the same in a part that has the same $defs.
func refersToDefinitions(schema []byte) bool {
	for d := json.NewDecoder(bytes.NewReader(schema)); ; {
		switch t, err := d.Token(); {
		case err != nil:
			return true
		case t == "$ref":
			to, _ := d.Token()
			ref, text := to.(string)
			if !text || !strings.HasPrefix(ref, "#/$defs/") && !strings.HasPrefix(ref, "#/definitions/") {
				return false
			}
		}
	}
}

// add reports a problem at a byte of the answer.
func (c *resultCheck) add(at int64, summary, hint string) {
	c.list = append(c.list, diag.Diagnostic{Severity: diag.Error, Code: "result-type", Summary: summary, Hint: hint, Range: c.place(at)})
}

// wrong reports a value. Its place is looked for at the end: a place for
// each value of an answer could take far more memory than the answer.
func (c *resultCheck) wrong(at, summary string) {
	if len(c.list) < maxResultProblems {
		c.list = append(c.list, diag.Diagnostic{Severity: diag.Error, Code: "result-type", Summary: summary})
		c.pointers = append(c.pointers, at)
	}
}

func (c *resultCheck) place(at int64) diag.Range {
	at = min(at, int64(len(c.data)))
	before := c.data[:at]
	column := len(bytes.Runes(before[bytes.LastIndexByte(before, '\n')+1:])) + 1
	pos := diag.Pos{Line: bytes.Count(before, []byte{'\n'}) + 1, Column: column, Byte: int(at)}
	return diag.Range{Filename: c.name, Start: pos, End: pos}
}

// walk returns what is wrong with a value. The library stops at the first
// problem, so objects and lists are looked at part by part; what their own
// keywords say counts where no part is wrong.
func (c *resultCheck) walk(s *jsonschema.Schema, value any, at string) {
	err := c.valid(s, value)
	if err == nil || len(c.list) >= maxResultProblems {
		return
	}
	before := len(c.list)
	if !c.parts {
		value = nil
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range s.Required {
			if _, has := v[key]; !has {
				c.wrong(at, fmt.Sprintf("%s lacks %q", pointer(at), key))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if p := s.Properties[key]; p != nil {
				c.walk(p, v[key], at+"/"+escapePointer(key))
			}
		}
	case []any:
		for i, item := range v {
			if s.Items != nil {
				c.walk(s.Items, item, at+"/"+strconv.Itoa(i))
			}
		}
	}
	if len(c.list) == before {
		c.wrong(at, pointer(at)+": "+plainSchemaError(err))
	}
}

// valid checks one value against a part of the schema, which may refer to the
// definitions of the whole.
func (c *resultCheck) valid(s *jsonschema.Schema, value any) error {
	r, ok := c.resolved[s]
	if !ok {
		whole := s
		if s != c.root {
			whole = &jsonschema.Schema{Schema: c.root.Schema, Defs: c.root.Defs, Definitions: c.root.Definitions, AllOf: []*jsonschema.Schema{s.CloneSchemas()}}
		}
		r.Resolved, r.err = whole.Resolve(nil)
		if c.resolved == nil {
			c.resolved = map[*jsonschema.Schema]resolved{}
		}
		c.resolved[s] = r
	}
	if r.err != nil {
		if s != c.root {
			return nil // a reference that only the whole resolves: its own check reports it
		}
		return r.err
	}
	return r.Validate(value)
}

func pointer(at string) string {
	if at == "" {
		return "the result"
	}
	return at
}

func escapePointer(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
}

// plainSchemaError leaves out where in the schema the library was.
func plainSchemaError(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "validating "); i >= 0 {
		if _, rest, ok := strings.Cut(text[i:], ": "); ok {
			text = rest
		}
	}
	// Numbers are fractions there, with six digits after the point.
	return fractionRE().ReplaceAllString(text, "$1")
}

var fractionRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(\d+)(?:/1|\.000000)\b`) })

// wanted are values that are looked for, by key or index.
type wanted struct {
	pointer string // where it is one itself
	is      bool
	below   map[string]*wanted
}

// locate returns the offsets of values by their JSON pointers.
func locate(data []byte, pointers []string) map[string]int64 {
	root := &wanted{}
	for _, p := range pointers {
		w := root
		for _, key := range strings.Split(p, "/")[1:] {
			if w.below[key] == nil {
				if w.below == nil {
					w.below = map[string]*wanted{}
				}
				w.below[key] = &wanted{}
			}
			w = w.below[key]
		}
		w.pointer, w.is = p, true
	}
	places := map[string]int64{}
	d := json.NewDecoder(bytes.NewReader(data))
	// The answer is JSON, so there are no errors on the way.
	var visit func(w *wanted)
	visit = func(w *wanted) {
		start := d.InputOffset()
		for start < int64(len(data)) && strings.IndexByte(" \t\r\n,:", data[start]) >= 0 {
			start++
		}
		if w != nil && w.is {
			places[w.pointer] = start
		}
		if w == nil || w.below == nil {
			skip(d)
			return
		}
		t, err := d.Token()
		open, ok := t.(json.Delim)
		if err != nil || !ok {
			return
		}
		for i := 0; d.More(); i++ {
			key := strconv.Itoa(i)
			if open == '{' {
				k, err := d.Token()
				if err != nil {
					return
				}
				key = escapePointer(k.(string))
			}
			visit(w.below[key])
		}
		_, _ = d.Token()
	}
	visit(root)
	return places
}

// skip passes over a value.
func skip(d *json.Decoder) {
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return
		}
	}
}
