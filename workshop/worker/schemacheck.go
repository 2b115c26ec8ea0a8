package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// checkSchema returns what is wrong with a JSON Schema (drafts 7 and 2020-12) as
// far as it can be told without an instance: values of the wrong kind, patterns
// and references that lead nowhere. Nothing outside of the document is read.
//
// The library keeps an unknown name of a type; [checkTypes] is ours for that.
func checkSchema(data []byte) error { return new(Schemas).check(data) }

func (all *Schemas) check(data []byte) error {
	var s jsonschema.Schema
	err := json.Unmarshal(data, &s)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		// The library's own types are in Field and Type; what the reader
		// wrote is the last part and Value.
		name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
		if name == "" {
			return fmt.Errorf("a schema is an object, found %s", wrong.Value)
		}
		return fmt.Errorf("%s can't be %s", name, wrong.Value)
	case err != nil:
		return err
	}
	if err := checkTypes("", &s); err != nil {
		return err
	}
	if err := all.spendPatterns(&s); err != nil {
		return err
	}
	_, err = s.Resolve(&jsonschema.ResolveOptions{Loader: func(u *url.URL) (*jsonschema.Schema, error) {
		return nil, fmt.Errorf("it refers to %s; only references inside the schema are followed", u)
	}})
	if err != nil {
		return err
	}
	return checkLoops(&s)
}

// schemaTypes are the names of JSON Schema validation 2020-12, §6.1.1.
var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// checkTypes looks for names of types that don't exist, in s, which is at
// the JSON pointer at, and below it.
func checkTypes(at string, s *jsonschema.Schema) error {
	if s == nil {
		return nil
	}
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	for _, t := range types {
		if !slices.Contains(schemaTypes, t) {
			return fmt.Errorf("at '%s/type': %q is none of %s", at, t, strings.Join(schemaTypes, ", "))
		}
	}
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		name := at + "/" + v.Type().Field(i).Name
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); tag != "-" {
			name = at + "/" + tag
		}
		switch below := v.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			if err := checkTypes(name, below); err != nil {
				return err
			}
		case []*jsonschema.Schema:
			for i, b := range below {
				if err := checkTypes(name+"/"+strconv.Itoa(i), b); err != nil {
					return err
				}
			}
		case map[string]*jsonschema.Schema:
			for _, k := range slices.Sorted(maps.Keys(below)) {
				if err := checkTypes(name+"/"+k, below[k]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// eachSchema visits a schema and those in it.
func eachSchema(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	visit(s)
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		switch below := v.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			eachSchema(below, visit)
		case []*jsonschema.Schema:
			for _, b := range below {
				eachSchema(b, visit)
			}
		case map[string]*jsonschema.Schema:
			for _, b := range below {
				eachSchema(b, visit)
			}
		}
	}
}
