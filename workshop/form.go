package workshop

import (
	"reflect"
	"strings"
	"sync"
)

// A form is a struct type that mirrors a mapping of the file. Its fields carry
// tags, from which both the loader and the JSON Schema are made:
//
//	key:"memory"        the key
//	validate:"min=1"    rules of go-playground/validator and of rules.go
//	literal:"reason"    no variables here, and why
//	required:"true"     the key must be there
//	unless:"extends"    or one of these
//	example:"memory: 2G"   a line to paste, for hints
//	default:"256M"      what an absent key means
//	doc:"…"             what the key means, for editors and docs/reference.md
//	names:"envname"     rule for the keys of a mapping with free names
//	number:"true"       a text that may be written as a number
type form struct {
	title  string // of the type, for messages
	fields []*field
	byKey  map[string]*field
	source int // index of the field `Source diag.Source`, or -1
}

type field struct {
	index    int
	keyName  string
	validate string
	literal  string
	example  string
	doc      string
	absent   string // value of an absent key
	names    string
	required bool
	unless   []string
	number   bool
	typ      reflect.Type
	parent   string // "mounts" for an item of mounts
}

// name returns how messages call the field.
func (f *field) name() string {
	switch {
	case f == nil:
		return "the value"
	case f.parent != "":
		return f.parent
	}
	return f.keyName
}

// item returns the field for an item of this list.
func (f *field) item() *field {
	if f == nil {
		return nil
	}
	x := *f
	x.parent = "an item of " + f.keyName
	return &x
}

// key returns the field for a value of this mapping.
func (f *field) key(name string) *field {
	if f == nil {
		return nil
	}
	x := *f
	x.parent = f.keyName + "." + clip(name)
	return &x
}

// in says where a key is missing.
func (f *form) in() string {
	if f.title == "" {
		return ""
	}
	return " in " + f.title
}

// titled is a form that names itself in messages.
type titled interface{ title() string }

var forms sync.Map // reflect.Type → *form; a cache of what the types say

func formOf(t reflect.Type) *form {
	if f, ok := forms.Load(t); ok {
		return f.(*form)
	}
	out := &form{byKey: map[string]*field{}, source: -1}
	if x, ok := reflect.New(t).Interface().(titled); ok {
		out.title = x.title()
	}
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Name == "Source" && sf.Tag.Get("key") == "" {
			out.source = i
			continue
		}
		key := sf.Tag.Get("key")
		if key == "" {
			continue
		}
		f := &field{
			index: i, keyName: key, typ: sf.Type,
			validate: sf.Tag.Get("validate"), literal: sf.Tag.Get("literal"),
			example: sf.Tag.Get("example"), doc: sf.Tag.Get("doc"), absent: sf.Tag.Get("default"), names: sf.Tag.Get("names"),
			required: sf.Tag.Get("required") == "true", unless: strings.Fields(sf.Tag.Get("unless")), number: sf.Tag.Get("number") == "true",
		}
		out.fields = append(out.fields, f)
		out.byKey[key] = f
	}
	forms.Store(t, out)
	return out
}

// keyNames returns the keys in the order of the type.
func (f *form) keyNames() []string {
	out := make([]string, len(f.fields))
	for i, x := range f.fields {
		out[i] = x.keyName
	}
	return out
}

func (f *form) list() string { return strings.Join(f.keyNames(), ", ") }
