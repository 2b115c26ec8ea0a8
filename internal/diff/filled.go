package diff

import (
	"reflect"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// Filled is a workshop that was loaded without Options.Symbols, with the values that its
// variables have in place of the variables: what runs is compared. w isn't changed.
func Filled(w *workshop.Workshop) *workshop.Workshop {
	f := filler{}
	return f.fill(reflect.ValueOf(w)).Interface().(*workshop.Workshop)
}

// filler copies values. Workers share the workshop's lists, and so do their copies: what
// is shared is compared once.
type filler map[list]reflect.Value

// list identifies a list.
type list struct {
	of    reflect.Type
	first uintptr
	n     int
}

func (f filler) fill(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(f.fill(v.Elem()))
		}
	case reflect.Slice:
		if v.Len() == 0 {
			return v
		}
		id := list{v.Type(), v.Pointer(), v.Len()}
		if done, ok := f[id]; ok {
			return done
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(f.fill(v.Index(i)))
		}
		f[id] = out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, f.fill(v.MapIndex(key)))
		}
	case reflect.Struct:
		out.Set(v)
		if r, ok := v.Interface().(firewall.Rule); ok {
			out.Set(reflect.ValueOf(r.Filled()))
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(f.fill(out.Field(i)))
			}
		}
		switch at := out.Addr().Interface().(type) {
		case *diag.Source:
			at.Template = ""
		case *workshop.Mount:
			at.ModeTemplate = ""
		}
	default:
		return v
	}
	return out
}
