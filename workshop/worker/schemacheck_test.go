package worker

import (
	"strings"
	"testing"
)

// schemas with what is told of them; "" for good ones.
var schemas = map[string]string{
	`{}`:   "",
	`true`: "",
	`{"type": ["object", "null"], "required": ["a"], "properties": {"a": {"enum": [1]}}, "additionalProperties": false}`: "",
	`{"properties": {"type": {"type": "string"}}, "enum": [{"type": "anything"}], "default": {"type": 5}}`:               "",
	`{"$defs": {"a/b": {"type": "string"}}, "$ref": "#/$defs/a~1b"}`:                                                     "",
	`{"$defs": {"a": {"$anchor": "x"}}, "items": {"$ref": "#x"}}`:                                                        "",
	`{"$ref": "#"}`: "the schema refers to itself without end",
	`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}, true], "definitions": {"a": {}}, "not": {"$ref": "#/definitions/a"}}`: "",
	`{"x-mine": [], "examples": [1], "format": "date", "pattern": "^a+$", "patternProperties": {"^x": {}}}`:                                     "",

	`5`:                  "a schema is an object, found number",
	`{"type": "objekt"}`: `at '/type': "objekt" is none of array, boolean, integer, null, number, object, string`,
	`{"anyOf": [{}, {"not": {"type": "x"}}]}`:                `at '/anyOf/1/not/type': "x" is none of`,
	`{"properties": {"a": {"type": ["string", "nothing"]}}}`: `at '/properties/a/type': "nothing" is none of`,
	`{"type": 5}`:                            "type",
	`{"properties": {"a": 5}}`:               "can't be number",
	`{"minLength": 1.5}`:                     "not an integer",
	`{"maximum": "1"}`:                       "maximum can't be string",
	`{"required": "a"}`:                      "required",
	`{"allOf": {}}`:                          "allOf",
	`{"properties": []}`:                     "properties",
	`{"enum": "a"}`:                          "enum",
	`{"pattern": "("}`:                       "missing closing )",
	`{"patternProperties": {"(": {}}}`:       "missing closing )",
	`{"uniqueItems": "yes"}`:                 "uniqueItems",
	`{"$ref": 5}`:                            "$ref",
	`{"$ref": "#/$defs/a"}`:                  "$defs",
	`{"$ref": "#a"}`:                         `"a"`,
	`{"$ref": "b.json"}`:                     "b.json",
	`{"$ref": "https://example.org/a.json"}`: "it refers to https://example.org/a.json",
	`{} {}`:                                  "trailing data after the schema",
	`{"a`:                                    "unexpected EOF",
}

func TestCompileSchema(t *testing.T) {
	for data, want := range schemas {
		_, err := new(Schemas).Compile("x", []byte(data))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", data, err, want)
		}
	}
}

// FuzzCompileSchema: no schema panics or hangs (B60), and what was accepted is
// accepted again in its compact form.
func FuzzCompileSchema(f *testing.F) {
	for data := range schemas {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if compact, err := new(Schemas).Compile("x", data); err == nil {
			if _, err := new(Schemas).Compile("x", compact); err != nil {
				t.Errorf("%s: %v", compact, err)
			}
		}
	})
}
