package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/llmdo/workshop/tool"
)

// schema is a JSON Schema that arguments are checked against ([check]), and its
// JSON. brief is the JSON for a model, without limits that no model comes near
// and that a call is checked for anyway.
type schema struct {
	is          *jsonschema.Schema
	json, brief json.RawMessage
}

// limit is what a number, a text or a list of an argument keeps to. Zero means
// none.
type limit struct {
	max int64 // of a number; characters of a text; entries of a list
	std int64 // the default of a number
}

// limits of arguments, by tool and name. No number may be below 0, and 0 is the
// same as nothing: many models fill in each argument.
var limits = map[string]map[string]limit{
	tool.Shell:       {"argv": {max: tool.MaxArgv}, "stdin": {max: tool.MaxStdinBytes}, "timeout_seconds": {}, "max_output_bytes": {max: tool.MaxOutputBytes, std: tool.DefaultOutputBytes}},
	tool.ReadFile:    {"first_line": {std: 1}, "max_lines": {}, "offset": {}, "max_bytes": {max: tool.MaxReadBytes, std: tool.DefaultReadBytes}},
	tool.WriteFile:   {"content": {max: (tool.MaxWriteBytes + 2) / 3 * 4}}, // base64
	tool.EditFile:    {"old_string": {max: tool.MaxEditFile}, "new_string": {max: tool.MaxEditFile}},
	tool.ListFiles:   {"max_entries": {max: tool.MaxEntries, std: tool.DefaultEntries}},
	tool.SearchFiles: {"context": {max: tool.MaxContextLines}, "max_matches": {max: tool.MaxMatches, std: tool.DefaultMatches}},
	tool.FetchURL:    {"max_bytes": {max: tool.MaxFetchBytes, std: tool.DefaultFetchBytes}},
}

var schemaCache sync.Map // of func() (schema, error), by reflect.Type and tool

// schemaOf makes the schema of a type once. name is the tool whose arguments it
// is, empty for a result.
func schemaOf(v any, name string) schema {
	type key struct {
		t    reflect.Type
		name string
	}
	k := key{reflect.TypeOf(v), name}
	f, ok := schemaCache.Load(k)
	if !ok {
		f, _ = schemaCache.LoadOrStore(k, sync.OnceValue(func() schema { return makeSchema(k.t, name) }))
	}
	return f.(func() schema)()
}

// makeSchema panics on a type that no schema describes: the types are our own,
// and a test goes through all of them.
func makeSchema(t reflect.Type, name string) schema {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{})
	if err != nil {
		panic(fmt.Sprintf("schema of %v: %v", t, err))
	}
	plain(s)
	for property, l := range limits[name] {
		l.apply(s.Properties[property])
	}
	out := schema{is: s, json: toJSON(s)}
	short := *s
	short.AdditionalProperties = nil
	short.Properties = map[string]*jsonschema.Schema{}
	for name, p := range s.Properties {
		q := *p
		q.Minimum, q.MaxLength, q.MaxItems = nil, nil, nil
		short.Properties[name] = &q
	}
	out.brief = toJSON(&short)
	return out
}

func toJSON(s *jsonschema.Schema) json.RawMessage {
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("schema %v: %v", s, err))
	}
	return data
}

// plain turns "null or a list" into a list: Go can't tell them apart, but no
// tool answers null or wants it.
func plain(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	for _, t := range s.Types {
		if t != "null" {
			s.Type = t
		}
	}
	s.Types = nil
	plain(s.Items)
	plain(s.AdditionalProperties)
	for _, p := range s.Properties {
		plain(p)
	}
}

func (l limit) apply(s *jsonschema.Schema) {
	switch s.Type {
	case "integer", "number":
		s.Minimum = jsonschema.Ptr(0.0)
		if l.max > 0 {
			s.Maximum = jsonschema.Ptr(float64(l.max))
		}
		if l.std > 0 {
			s.Default = json.RawMessage(strconv.FormatInt(l.std, 10))
		}
	case "string":
		s.MaxLength = jsonschema.Ptr(int(l.max))
	case "array":
		s.MaxItems = jsonschema.Ptr(int(l.max))
	}
}
