package worker

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// checkLoops refuses a schema that refers to itself for one and the same value
// ({"$ref": "#"}), at which the library would never end (B60). A schema that
// refers to itself for a part of the value, as one for a tree does, is fine.
func checkLoops(root *jsonschema.Schema) error {
	l := loops{at: map[string]*jsonschema.Schema{}, inPlace: map[string][]string{}, anchors: map[string]string{}, state: map[string]int{}}
	if err := l.collect("", root); err != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(l.at)) {
		if err := l.visit(at); err != nil {
			return err
		}
	}
	return nil
}

type loops struct {
	at      map[string]*jsonschema.Schema // by JSON pointer
	inPlace map[string][]string           // pointers of the schemas in a schema that look at the same value
	anchors map[string]string
	state   map[string]int // 1: on the way, 2: done
}

// otherNames are keywords that are in fields of another name or without one.
var otherNames = map[string]string{"Items": "items", "ItemsArray": "items", "DependencySchemas": "dependencies"}

func (l *loops) collect(at string, s *jsonschema.Schema) error {
	switch {
	case s.DynamicRef != "":
		return fmt.Errorf("at '%s': $dynamicRef isn't followed; write $ref", at)
	case s.ID != "" && at != "":
		return fmt.Errorf("at '%s': only the whole schema may have an $id", at)
	}
	l.at[at] = s
	for _, a := range []string{s.Anchor, s.DynamicAnchor} {
		if a != "" {
			l.anchors[a] = at
		}
	}
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if other := otherNames[f.Name]; other != "" {
			name = other
		}
		var err error
		add := func(tail string, below *jsonschema.Schema) {
			if err != nil || below == nil {
				return
			}
			to := at + "/" + name + tail
			if slices.Contains(inPlace, name) {
				l.inPlace[at] = append(l.inPlace[at], to)
			}
			err = l.collect(to, below)
		}
		switch below := v.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			add("", below)
		case []*jsonschema.Schema:
			for i, b := range below {
				add("/"+strconv.Itoa(i), b)
			}
		case map[string]*jsonschema.Schema:
			for k, b := range below {
				add("/"+escapePointer(k), b)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inPlace are the keywords whose schemas look at the same value.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// visit follows what looks at the same value as the schema at a place.
func (l *loops) visit(at string) error {
	switch l.state[at] {
	case 1:
		return fmt.Errorf("at '%s': the schema refers to itself without end", at)
	case 2:
		return nil
	}
	l.state[at] = 1
	s := l.at[at]
	if s.Ref != "" {
		to, err := l.target(s.Ref)
		if err == nil {
			err = l.visit(to)
		}
		if err != nil {
			return err
		}
	}
	for _, next := range l.inPlace[at] {
		if err := l.visit(next); err != nil {
			return err
		}
	}
	l.state[at] = 2
	return nil
}

// target finds the place that a reference names.
func (l *loops) target(ref string) (string, error) {
	fragment, local := strings.CutPrefix(ref, "#")
	if root := l.at[""]; !local && root.ID != "" {
		fragment, local = strings.CutPrefix(ref, root.ID)
		fragment = strings.TrimPrefix(fragment, "#")
	}
	to, err := url.PathUnescape(fragment)
	if anchor, ok := l.anchors[to]; ok {
		to = anchor
	}
	if !local || err != nil || l.at[to] == nil {
		return "", fmt.Errorf("it refers to %s; only references inside the schema (#/$defs/NAME, #NAME) are followed", ref)
	}
	return to, nil
}
