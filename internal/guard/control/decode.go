package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// fields that each operation has beside op.
var fields = map[Op][]string{
	OpState:   {},
	OpPolicy:  {"policy", "reset"},
	OpChange:  {"changes", "for", "reset"},
	OpLearn:   {"rooms", "for"},
	OpExplain: {"room", "host", "port"},
}

// decode reads the one request of a line.
func decode(line io.Reader) (Request, error) {
	d := json.NewDecoder(line)
	d.DisallowUnknownFields()
	var r Request
	if err := d.Decode(&r); errors.Is(err, io.EOF) {
		return Request{}, errors.New("the request is empty")
	} else if err != nil {
		return Request{}, fmt.Errorf("the request is not understood: %w", err)
	}
	switch _, err := d.Token(); {
	case errors.Is(err, io.EOF):
	case errors.Is(err, errTooLong):
		return Request{}, err
	default:
		return Request{}, errors.New("there is something behind the request")
	}
	return r, r.check()
}

// check refuses fields that the operation doesn't have: whoever sent them means
// something else than what would be done.
func (r *Request) check() error {
	known, ok := fields[r.Op]
	if !ok {
		return fmt.Errorf("unknown operation %q; this guard knows state, policy, change, learn and explain", clip(string(r.Op)))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"policy", r.Policy != nil}, {"reset", r.Reset}, {"changes", r.Changes != nil}, {"rooms", r.Rooms != nil},
		{"for", r.For != 0}, {"room", r.Room != ""}, {"host", r.Host != ""}, {"port", r.Port != 0},
	} {
		if f.set && !slices.Contains(known, f.name) {
			return fmt.Errorf("operation %s has no field %q", r.Op, f.name)
		}
	}
	return nil
}

// maxError bounds the text of an error, which may repeat what was sent.
const maxError = 2000

// clip bounds text that came in.
func clip(s string) string {
	if len(s) > maxError {
		return s[:maxError] + "…"
	}
	return s
}
