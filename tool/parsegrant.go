package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ParseGrant reads a [Grant] from the arguments of a gate. Unknown members are
// errors: a grant that is not understood as a whole grants nothing.
func ParseGrant(text string) (Grant, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	var g Grant
	if err := d.Decode(&g); err != nil {
		return Grant{}, fmt.Errorf("the worker's grant is not valid: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Grant{}, errors.New("the worker's grant: trailing data after the object")
	}
	for _, o := range g.Tools {
		if err := CheckOffer(o); err != nil {
			return Grant{}, err
		}
	}
	for name, s := range g.MCP {
		if len(s.Command) == 0 {
			return Grant{}, fmt.Errorf("the MCP server %s has no command", name)
		}
	}
	return g, nil
}
