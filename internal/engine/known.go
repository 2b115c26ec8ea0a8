package engine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// KnownFields lists, per type of the project, the fields that an engine
// supports. Any other field that is set is an error, never dropped.
type KnownFields map[string][]string

// UnknownFieldError means that the project sets fields that an engine doesn't
// support.
type UnknownFieldError struct {
	Engine string // "docker"
	Of     string // "service x"
	Fields []string
}

// Error names them.
func (e *UnknownFieldError) Error() string {
	return fmt.Sprintf("%s: the %s engine does not support %s", e.Of, e.Engine, strings.Join(e.Fields, ", "))
}

// Check returns an [UnknownFieldError] if v, or a struct of a listed type in it,
// sets a field that isn't listed.
func (k KnownFields) Check(engine, of string, v any) error {
	var fields []string
	k.walk(reflect.ValueOf(v), "", &fields)
	if len(fields) == 0 {
		return nil
	}
	slices.Sort(fields)
	return &UnknownFieldError{Engine: engine, Of: of, Fields: slices.Compact(fields)}
}

func (k KnownFields) walk(v reflect.Value, path string, out *[]string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			k.walk(v.Elem(), path, out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			k.walk(v.Index(i), path, out)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			k.walk(v.MapIndex(key), path, out)
		}
	case reflect.Struct:
		if fields, ok := k[v.Type().Name()]; ok {
			k.fields(v, fields, path, out)
		}
	}
}

func (k KnownFields) fields(v reflect.Value, fields []string, path string, out *[]string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous:
			k.fields(v.Field(i), fields, path, out)
		case v.Field(i).IsZero() || empty(v.Field(i)):
		case !slices.Contains(fields, f.Name):
			*out = append(*out, strings.TrimPrefix(path+"."+f.Name, "."))
		case f.Name != "Extensions":
			k.walk(v.Field(i), path+"."+f.Name, out)
		}
	}
}

// empty reports whether v is an empty slice or map. Fields for which empty has a
// meaning (command, entrypoint) are listed.
func empty(v reflect.Value) bool {
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}
