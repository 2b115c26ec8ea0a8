package mcpclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// checkSchema tells what is wrong with the schema of a tool: it must be a JSON
// Schema of an object that refers to nothing outside of itself. It is passed on,
// never compared with anything here: a schema may call itself.
func checkSchema(raw json.RawMessage) error {
	switch {
	case len(raw) == 0:
		return errors.New("there is no schema")
	case len(raw) > MaxSchema:
		return fmt.Errorf("the schema has %d bytes, more than %d", len(raw), MaxSchema)
	case depthOf(raw) > MaxSchemaDepth:
		return fmt.Errorf("the schema is nested deeper than %d", MaxSchemaDepth)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("the schema can't be read: %w", err)
	}
	if s.Type != "object" {
		return errors.New(`the schema isn't of type "object"`)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("the schema can't be read: %w", err)
	}
	return refersInside(v)
}

// refersInside refuses references to other documents: whoever reads the schema
// could go and get them.
func refersInside(v any) error {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if err := refersInside(x); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, x := range v {
			if to, ok := x.(string); ok && (key == "$ref" || key == "$dynamicRef") && !strings.HasPrefix(to, "#") {
				return fmt.Errorf("the schema refers to %q, outside of itself", clean(to, 80))
			}
			if err := refersInside(x); err != nil {
				return err
			}
		}
	}
	return nil
}
