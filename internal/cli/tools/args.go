package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// maxCallArgs bounds the arguments that a command line takes from a file or
// the standard input; a toolbox takes less.
const maxCallArgs = 64 << 20

// toolSchema is what of a JSON Schema types the arguments of a command line.
type toolSchema struct {
	Type        schemaTypes            `json:"type"`
	Description string                 `json:"description"`
	Properties  map[string]*toolSchema `json:"properties"`
	Required    []string               `json:"required"`
	Items       *toolSchema            `json:"items"`
	Enum        []any                  `json:"enum"`
	Default     json.RawMessage        `json:"default"`
	// Additional is false, true or a schema.
	Additional json.RawMessage `json:"additionalProperties"`
	// order are the names of Properties as they are written.
	order []string
}

// schemaTypes is "string", or a list such as ["null", "array"].
type schemaTypes []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *schemaTypes) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = schemaTypes{one}
		return nil
	}
	var list []string
	err := json.Unmarshal(b, &list)
	*t = list
	return err
}

// kind is the one type that isn't null; empty where there are several or none.
func (s *toolSchema) kind() string {
	if s == nil {
		return ""
	}
	types := slices.DeleteFunc(slices.Clone(s.Type), func(t string) bool { return t == "null" })
	if len(types) != 1 {
		return ""
	}
	return types[0]
}

// closed reports whether only the listed properties are allowed.
func (s *toolSchema) closed() bool { return string(bytes.TrimSpace(s.Additional)) == "false" }

// parseSchema reads a tool's input schema. One that can't be read types
// nothing: whoever executes the tool judges.
func parseSchema(raw json.RawMessage) *toolSchema {
	s := &toolSchema{}
	var written struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(raw, s) != nil || json.Unmarshal(raw, &written) != nil {
		return &toolSchema{}
	}
	d := json.NewDecoder(bytes.NewReader(written.Properties))
	if _, err := d.Token(); err != nil { // {
		return s
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		s.order = append(s.order, fmt.Sprint(name))
	}
	return s
}

// callArgs makes one JSON object of what follows TOOL: an object, `-`, or
// `@FILE`, else KEY=VALUE with types by the schema.
func (a verbs) callArgs(words []string, s *toolSchema) (json.RawMessage, error) {
	if len(words) == 1 {
		word := words[0]
		switch {
		case word == "-":
			data, err := io.ReadAll(io.LimitReader(a.In, maxCallArgs+1))
			if err == nil && len(data) > maxCallArgs {
				err = boundedfile.SizeError(maxCallArgs)
			}
			if err != nil {
				return nil, fmt.Errorf("the standard input: %w", err)
			}
			return jsonObject("the standard input", data)
		case strings.HasPrefix(word, "@"):
			data, err := boundedfile.Read(a.Abs(word[1:]), maxCallArgs)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", word[1:], app.PlainPathError(err))
			}
			return jsonObject(word[1:], data)
		case strings.HasPrefix(strings.TrimSpace(word), "{"):
			return jsonObject("the argument", []byte(word))
		}
	}
	object := map[string]any{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%s is neither KEY=VALUE nor, alone, a JSON object, - or @FILE%s", shellquote.Quote(word), s.keyMeant(word, object))
		}
		if err := setArg(object, s, key, value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(object)
}

// keyMeant asks whether a word without a key is the tool's only required argument;
// empty where there are several, or it is given.
func (s *toolSchema) keyMeant(word string, given map[string]any) string {
	if len(s.Required) != 1 || strings.Contains(word, "=") || s.Properties[word] != nil {
		return ""
	}
	key := s.Required[0]
	if _, ok := given[key]; ok || s.Properties[key].kind() != "string" {
		return ""
	}
	return ": did you mean " + shellquote.Quote(key+"="+word) + "?"
}

// jsonObject checks that a text is one.
func jsonObject(name string, data []byte) (json.RawMessage, error) {
	data = bytes.TrimSpace(data)
	if !json.Valid(data) {
		var v any
		return nil, fmt.Errorf("%s: not valid JSON: %w", name, json.Unmarshal(data, &v))
	}
	if data[0] != '{' {
		return nil, fmt.Errorf("%s: got JSON, want an object {…}", name)
	}
	return data, nil
}

// setArg adds KEY=VALUE to an object. A list takes one element from each, or
// all from one JSON array; KEY.NAME sets NAME of an object.
func setArg(object map[string]any, s *toolSchema, key, value string) error {
	p, known := s.Properties[key]
	if parent, name, nested := strings.Cut(key, "."); !known && nested {
		if p, ok := s.Properties[parent]; ok && p.kind() == "object" && name != "" {
			return setMember(object, p, parent, name, value)
		}
	}
	_, twice := object[key]
	if p.kind() == "array" {
		if trimmed := strings.TrimSpace(value); strings.HasPrefix(trimmed, "[") && !twice {
			var list []any
			if err := decodeJSON(trimmed, &list); err == nil {
				object[key] = list
				return nil
			}
		}
		v, err := typedArg(p.Items, key, value)
		if err != nil {
			return err
		}
		list, _ := object[key].([]any)
		object[key] = append(list, v)
		return nil
	}
	if twice {
		return fmt.Errorf("%s is given twice but is not a list", key)
	}
	v, err := typedArg(p, key, value)
	object[key] = v
	return err
}

// setMember is env.LANG=C.
func setMember(object map[string]any, s *toolSchema, key, name, value string) error {
	member := s.Properties[name]
	if member == nil {
		member = &toolSchema{}
		_ = json.Unmarshal(s.Additional, member) // a boolean says nothing of the type
	}
	v, err := typedArg(member, key+"."+name, value)
	if err != nil {
		return err
	}
	members, ok := object[key].(map[string]any)
	if !ok {
		if _, there := object[key]; there {
			return fmt.Errorf("%s is given twice", key)
		}
		members = map[string]any{}
		object[key] = members
	}
	if _, twice := members[name]; twice {
		return fmt.Errorf("%s.%s is given twice", key, name)
	}
	members[name] = v
	return nil
}

// typedArg reads a value by its type; without one, JSON is taken as JSON and
// all else as text.
func typedArg(s *toolSchema, key, value string) (any, error) {
	switch s.kind() {
	case "string":
		return value, nil
	case "boolean":
		switch value {
		case "true", "false":
			return value == "true", nil
		}
		return nil, fmt.Errorf("%s=%s: true or false", key, value)
	case "integer":
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return nil, fmt.Errorf("%s=%s: a whole number is needed", key, value)
		}
		return json.Number(value), nil
	case "number":
		var n json.Number
		if decodeJSON(value, &n) != nil || n == "" || strings.HasPrefix(value, `"`) {
			return nil, fmt.Errorf("%s=%s: a number is needed", key, value)
		}
		return n, nil
	case "object":
		var v map[string]any
		if err := decodeJSON(value, &v); err != nil {
			return nil, fmt.Errorf("%s=%s: a JSON object is needed, or %s.NAME=VALUE", key, value, key)
		}
		return v, nil
	}
	var v any
	if decodeJSON(value, &v) == nil {
		return v, nil
	}
	return value, nil
}

// decodeJSON reads one value and keeps numbers as they are written.
func decodeJSON(text string, v any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// checkArgs finds what would be refused anyway: a key that the tool hasn't, and
// one that it needs.
func checkArgs(args json.RawMessage, s *toolSchema) (problem, hint string) {
	var object map[string]json.RawMessage
	if json.Unmarshal(args, &object) != nil {
		return "", ""
	}
	known := slices.Sorted(maps.Keys(s.Properties))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if s.closed() && !slices.Contains(known, key) {
			if len(known) == 0 {
				return fmt.Sprintf("no argument %q: it takes none", key), ""
			}
			return fmt.Sprintf("no argument %q", key), app.Suggestion(key, known)
		}
	}
	for _, key := range s.Required {
		if _, ok := object[key]; !ok {
			return "argument missing: " + key, ""
		}
	}
	return "", ""
}
