package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// fields lists the fields of each operation besides op.
var fields = map[Op][]string{
	OpState:   {},
	OpPolicy:  {"policy", "reset"},
	OpChange:  {"changes", "for", "reset"},
	OpLearn:   {"rooms", "for"},
	OpReopen:  {},
	OpExplain: {"room", "host", "port", "from"},
	OpFailed:  {"worker", "since"},
	OpAttach:  {"version"},
}

// decode parses the one request of a line. It doesn't parse the policy, which may
// be large and has its own parser.
func decode(line []byte) (Request, error) {
	bad := func(err error) (Request, error) {
		return Request{}, fmt.Errorf("invalid request: %w", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(line, &all); err != nil {
		return bad(err)
	}
	policy := all["policy"]
	delete(all, "policy")
	for key := range all {
		if strings.EqualFold(key, "policy") {
			return bad(fmt.Errorf("json: unknown field %q", key))
		}
	}
	rest, err := json.Marshal(all)
	if err != nil {
		return bad(err)
	}
	d := json.NewDecoder(bytes.NewReader(rest))
	d.DisallowUnknownFields()
	var r Request
	if err := d.Decode(&r); err != nil {
		return bad(err)
	}
	r.Policy = policy
	return r, r.check()
}

// check refuses fields that the operation doesn't have: their sender expects
// another effect.
func (r *Request) check() error {
	known, ok := fields[r.Op]
	if !ok {
		return fmt.Errorf("unknown operation %q; this guard knows state, policy, change, learn, reopen, explain, failed and attach", clip.Bytes(string(r.Op), maxError))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"policy", r.Policy != nil}, {"reset", r.Reset}, {"changes", r.Changes != nil}, {"rooms", r.Rooms != nil},
		{"for", r.For != 0}, {"room", r.Room != ""}, {"host", r.Host != ""}, {"port", r.Port != 0},
		{"from", r.From.IsValid()}, {"worker", r.Worker != ""}, {"since", !r.Since.IsZero()}, {"version", r.Version != 0},
	} {
		if f.set && !slices.Contains(known, f.name) {
			return fmt.Errorf("operation %s has no field %q", r.Op, f.name)
		}
	}
	return nil
}

// maxError bounds the text of an error, which may quote the request.
const maxError = 2000
