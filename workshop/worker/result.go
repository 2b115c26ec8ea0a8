package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/llmdo/workshop/internal/diag"
)

// MaxResult is the largest result that is checked, in bytes.
const MaxResult = 16 << 20

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
	places, value, err := decodePlaces(data)
	if err != nil {
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
	c.root, c.places, c.parts = &root, places, refersToDefinitions(schema)
	c.walk(&root, value, "")
	slices.SortStableFunc(c.list, func(a, b diag.Diagnostic) int { return a.Range.Start.Byte - b.Range.Start.Byte })
	return c.list
}

type resultCheck struct {
	name   string
	data   []byte
	root   *jsonschema.Schema
	places map[string]int64 // offset of each value by its JSON pointer
	parts  bool             // parts of the schema mean the same by themselves
	list   diag.List
}

// refersToDefinitions tells that every reference of a schema leads to $defs, so
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

func (c *resultCheck) add(at int64, summary, hint string) {
	if len(c.list) < maxResultProblems {
		at = min(at, int64(len(c.data)))
		before := c.data[:at]
		column := len(bytes.Runes(before[bytes.LastIndexByte(before, '\n')+1:])) + 1
		pos := diag.Pos{Line: bytes.Count(before, []byte{'\n'}) + 1, Column: column, Byte: int(at)}
		c.list = append(c.list, diag.Diagnostic{Severity: diag.Error, Code: "result-type", Summary: summary, Hint: hint,
			Range: diag.Range{Filename: c.name, Start: pos, End: pos}})
	}
}

// walk tells what is wrong with a value. The library stops at the first
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
				c.add(c.places[at], fmt.Sprintf("%s lacks %q", pointer(at), key), "")
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
		c.add(c.places[at], pointer(at)+": "+plainSchemaError(err), "")
	}
}

// valid checks one value against a part of the schema, which may refer to the
// definitions of the whole.
func (c *resultCheck) valid(s *jsonschema.Schema, value any) error {
	whole := s
	if s != c.root {
		whole = &jsonschema.Schema{Schema: c.root.Schema, Defs: c.root.Defs, Definitions: c.root.Definitions, AllOf: []*jsonschema.Schema{s.CloneSchemas()}}
	}
	r, err := whole.Resolve(nil)
	if err != nil {
		if s != c.root {
			return nil // a reference that only the whole resolves: its own check tells
		}
		return err
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
	// Numbers stand there as fractions, and with six digits behind the point.
	return fractionRE().ReplaceAllString(text, "$1")
}

var fractionRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(\d+)(?:/1|\.000000)\b`) })

// decodePlaces decodes JSON and notes where each value begins.
func decodePlaces(data []byte) (map[string]int64, any, error) {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, nil, err
	}
	places := map[string]int64{}
	d := json.NewDecoder(bytes.NewReader(data))
	var visit func(at string) error
	visit = func(at string) error {
		start := d.InputOffset()
		for start < int64(len(data)) && strings.IndexByte(" \t\r\n,:", data[start]) >= 0 {
			start++
		}
		places[at] = start
		t, err := d.Token()
		if err != nil {
			return err
		}
		open, ok := t.(json.Delim)
		if !ok {
			return nil
		}
		for i := 0; d.More(); i++ {
			key := strconv.Itoa(i)
			if open == '{' {
				k, err := d.Token()
				if err != nil {
					return err
				}
				key = k.(string)
			}
			if err := visit(at + "/" + escapePointer(key)); err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	}
	if err := visit(""); err != nil && err != io.EOF {
		return nil, nil, err
	}
	return places, value, nil
}
