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
// is given twice and trailing data are errors: the check of a call and its
// execution must see the same one.
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
		return errors.New("arguments: want a JSON object")
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
			return fmt.Errorf("argument %q is given twice", key)
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
		return errors.New("arguments: trailing data after the object")
	}
	return nil
}
