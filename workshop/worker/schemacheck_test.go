package worker

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiles is what a validator says: the other opinion.
func compiles(data []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	if err := c.AddResource("https://workshop.invalid/schema", doc); err != nil {
		return err
	}
	_, err = c.Compile("https://workshop.invalid/schema")
	return err
}

type nowhere struct{}

func (nowhere) Load(string) (any, error) { return nil, errors.New("nowhere") }

// schemas with what is told of them; "" for good ones.
var schemas = map[string]string{
	`{}`:   "",
	`true`: "",
	`{"type": ["object", "null"], "required": ["a"], "properties": {"a": {"enum": [1]}}, "additionalProperties": false}`:                               "",
	`{"$defs": {"a/b": {"type": "string"}}, "$ref": "#/$defs/a~1b"}`:                                                                                   "",
	`{"$defs": {"a": {"$anchor": "x"}}, "items": {"$ref": "#x"}}`:                                                                                      "",
	`{"$id": "https://example.org/a", "$defs": {"b": {"$id": "b", "type": "null"}}, "$ref": "b", "items": {"$ref": "https://example.org/a#/$defs/b"}}`: "",
	`{"$ref": "#"}`: "",
	`{"$ref": "https://json-schema.org/draft/2020-12/schema"}`:                                                                                "",
	`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}, true], "definitions": {"a": {"$id": "#x"}}, "not": {"$ref": "#x"}}`: "",
	`{"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": true, "id": "https://example.org/a"}`:           "",
	`{"$schema": "https://json-schema.org/draft/2019-09/schema", "items": [{}], "$recursiveAnchor": true}`:                                    "",
	`{"minLength": 2.0, "maxLength": 1e2, "multipleOf": 0.5, "x-mine": [], "examples": [1], "format": "date", "default": 1}`:                  "",
	`{"const": {"$ref": "nowhere"}, "enum": [{"type": 5}], "pattern": "^a+$", "patternProperties": {"^x": {}}}`:                               "",
	`{"dependencies": {"a": ["b"], "c": {}}, "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": {}}}`:                               "",

	`5`:                              "at '': a schema is an object, found the number 5",
	`{"type": "objekt"}`:             `at '/type': "objekt" is none of array, boolean, integer, null, number, object, string`,
	`{"type": []}`:                   "at '/type': names no type",
	`{"type": ["string", "string"]}`: `at '/type/1': "string" is there twice`,
	`{"properties": {"a/b": {"minLength": -1}, "c": 5}}`: "at '/properties/a~1b/minLength': must be a whole number from 0, found the number -1; at '/properties/c': a schema is an object, found the number 5",
	`{"minLength": 1.5}`:                         "must be a whole number from 0",
	`{"minLength": "1"}`:                         "must be a whole number from 0",
	`{"maximum": "1"}`:                           "must be a number",
	`{"exclusiveMaximum": true}`:                 "must be a number, found a boolean",
	`{"multipleOf": 0}`:                          "must be a number above 0",
	`{"required": "a"}`:                          `must be a list of property names, found "a"`,
	`{"required": ["a", "a"]}`:                   `at '/required/1': "a" is there twice`,
	`{"required": [1]}`:                          "must be a text",
	`{"allOf": []}`:                              "must be a list of schemas that is not empty",
	`{"allOf": {}}`:                              "must be a list of schemas",
	`{"items": [{}]}`:                            "a schema is an object, found an array",
	`{"properties": []}`:                         "must be an object, found an array",
	`{"enum": "a"}`:                              "must be an array",
	`{"pattern": "("}`:                           "at '/pattern': missing closing )",
	`{"patternProperties": {"(": {}}}`:           "missing closing )",
	`{"uniqueItems": "yes"}`:                     "must be true or false",
	`{"title": null}`:                            "must be a text, found null",
	`{"$ref": 5}`:                                "must be a text",
	`{"$ref": "#/$defs/a"}`:                      `at '/$ref': there is nothing at "#/$defs/a"`,
	`{"$ref": "#a"}`:                             `there is no anchor "a"`,
	`{"x": {"a": {"type": 5}}, "$ref": "#/x/a"}`: "at '/x/a/type': the number 5 is none of",
	`{"$ref": "b.json"}`:                         "it refers to b.json; only references inside the schema are followed",
	`{"$anchor": "1 2"}`:                         `"1 2" is no name`,
	`{"$schema": "https://example.org/mine"}`:    `its $schema "https://example.org/mine" is none of http://json-schema.org/draft-04/schema`,
	`{"$schema": "http://json-schema.org/draft-04/schema#", "required": []}`: "must not be empty in draft 4",
	`{"$defs": {"a": {"$id": "x"}, "b": {"$id": "x"}}}`:                      "at '/$defs/b/$id': another schema has this URI",
	`{"$recursiveAnchor": true}`:                                             "must be a text",
	`{"$schema": "http://json-schema.org/draft-07/schema#", "enum": [1, 1]}`: "at '/enum/1': is there twice",
	`{"$schema": "http://json-schema.org/draft-07/schema#", "enum": []}`:     "at '/enum': must not be empty",
	`{} {}`: "there is something behind the schema",
	`{"a`:   "unexpected EOF",
}

func TestCompileSchema(t *testing.T) {
	for data, want := range schemas {
		_, err := CompileSchema("x", []byte(data))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", data, err, want)
		}
		if other := compiles([]byte(data)); (other == nil) != (err == nil) {
			t.Errorf("%s: %v, the validator says %v", data, err, other)
		}
	}
}

// FuzzCompileSchema: what passes here compiles in a validator. (Not the other
// way: what no validator would follow, as odd URIs, may be refused here.)
func FuzzCompileSchema(f *testing.F) {
	for data := range schemas {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := CompileSchema("x", data); err == nil {
			if err := compiles(data); err != nil {
				t.Errorf("%s: the validator says %v", data, err)
			}
		}
	})
}
