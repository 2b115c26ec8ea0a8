package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Decode reads the arguments of a tool into one of the structs of this package.
// Nothing is read as if it were {}. A key that the struct hasn't, a key that
// stands twice and bytes behind the object are errors: whoever checks a call and
// whoever runs it must see the same one.
func Decode(args json.RawMessage, into any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		return nil
	}
	if err := uniqueKeys(args); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the arguments can't be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// uniqueKeys wants one JSON object whose own keys differ. encoding/json takes
// the last of equal ones, joins maps, and doesn't look at upper and lower case.
func uniqueKeys(args json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(args))
	t, err := d.Token()
	if err != nil || t != json.Delim('{') {
		return errors.New("the arguments must be a JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return fmt.Errorf("the arguments can't be read: %w", err)
		}
		key, _ := t.(string)
		if strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") != "" { // others may fold to one of ours
			return fmt.Errorf("unknown argument %q", key)
		}
		if seen[key] {
			return fmt.Errorf("the argument %q stands twice", key)
		}
		seen[key] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("the arguments can't be read: %w", err)
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return fmt.Errorf("the arguments can't be read: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something stands behind the arguments")
	}
	return nil
}
