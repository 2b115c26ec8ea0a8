package toolbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// decode reads a JSON object into a struct: no key that it hasn't, none twice,
// all that it needs (fields without omitempty), each of its type. It tells all
// problems at once, as CodeInvalidParams.
func decode(data []byte, into any) error {
	return invalid(decodeObject(data, into))
}

// invalid makes the error of problems; nil of none.
func invalid(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return &wire.Error{Code: wire.CodeInvalidParams, Message: strings.Join(problems, "; ")}
}

func decodeObject(data []byte, into any) (problems []string) {
	v := reflect.ValueOf(into).Elem()
	fields := map[string]int{}
	var names []string
	var missing []string
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		fields[name] = i
		names = append(names, name)
		if option != "omitempty" {
			missing = append(missing, name)
		}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return []string{"an object is needed, with " + strings.Join(names, ", ")}
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return append(problems, unreadable(err))
		}
		name, _ := t.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return append(problems, unreadable(err))
		}
		i, known := fields[name]
		switch {
		case !known:
			problems = append(problems, fmt.Sprintf("unknown argument %q, want one of %s", clip.Text(name, shown), strings.Join(names, ", ")))
			continue
		case seen[name]:
			problems = append(problems, fmt.Sprintf("%s is given twice", name))
			continue
		}
		seen[name] = true
		if string(value) == "null" { // as if it weren't there
			continue
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
		if err := json.Unmarshal(value, v.Field(i).Addr().Interface()); err != nil {
			problems = append(problems, fmt.Sprintf("%s must be %s", name, kindName(v.Field(i).Type())))
		}
	}
	if _, err := d.Token(); err != nil {
		return append(problems, unreadable(err))
	}
	if _, err := d.Token(); err != io.EOF {
		problems = append(problems, "trailing data after the object")
	}
	for _, m := range missing {
		problems = append(problems, m+" is missing")
	}
	return problems
}

func unreadable(err error) string { return "not valid JSON: " + err.Error() }

// shown is how much of what a client sent a message repeats, in bytes.
const shown = 100

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return "a list of strings"
		}
	case reflect.Map:
		return "an object of strings"
	case reflect.Pointer: // of the terminal
		return "an object of numbers"
	}
	return "valid JSON"
}
