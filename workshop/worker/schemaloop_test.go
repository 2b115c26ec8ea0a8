package worker

import "testing"

// TestSchemaLoops: B60. The library doesn't come back from a schema that looks
// at the same value again and again.
func TestSchemaLoops(t *testing.T) {
	for in, want := range map[string]bool{
		`{"$ref": "#"}`: false,
		`{"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}`: false,
		`{"$defs": {"a": {"$anchor": "x", "if": {"$ref": "#x"}}}}`:                                                       false,
		`{"$defs": {"a": {"dependentSchemas": {"k": {"$ref": "#/$defs/a"}}}}}`:                                           false,
		`{"properties": {"a": {"$id": "https://example.org/x", "$ref": "https://example.org/x"}}}`:                       false,
		`{"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}`:                                                true,
		`{"type": "array", "items": {"$ref": "#"}}`:                                                                      true,
		`{"$id": "https://example.org/s", "allOf": [{"$ref": "#/$defs/a~1b"}], "$defs": {"a/b": {"type": "string"}}}`:    true,
		`{"$id": "https://example.org/s", "allOf": [{"$ref": "https://example.org/s"}]}`:                                 false,
		`{"$defs": {"x": {"$anchor": "x"}}, "anyOf": [{"$ref": "#x"}, {"$ref": "#x"}]}`:                                  true,
	} {
		if err := checkSchema([]byte(in)); (err == nil) != want {
			t.Errorf("%s: %v", in, err)
		}
	}
}
