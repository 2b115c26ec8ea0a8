package toolbox

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestToolCalled(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"name":"b"}}}`: "a",
		`{"params":{"name":"a"},"method":"tools\/call"}`:                                                "a",
		`{"m\u0065thod":"tools/call","params":{"n\u0061me":"\u0061"}}`:                                  "a",
		`{"method":"tools/list","params":{"name":"a"}}`:                                                 "-",
		`{"id":1,"result":{"method":"tools/call"}}`:                                                     "-",
		`{"method":7}`:                                                   "-",
		`{"method":"tools/call"}`:                                        "!",
		`{"method":"tools/call","params":[]}`:                            "!",
		`{"method":"tools/call","params":{"name":7}}`:                    "!",
		`{"method":"tools/list","method":"tools/call"}`:                  "!",
		`{"method":"tools/list","Method":"tools/call"}`:                  "!",
		`{"METHOD":"tools/call","params":{"name":"a"}}`:                  "!",
		`{"method":"tools/list","\u004dethod":"tools/call"}`:             "!",
		`{"method":"tools/call","params":{"name":"a","name":"b"}}`:       "!",
		`{"method":"tools/call","params":{"name":"a"},"params":{}}`:      "!",
		`{"method":"tools/call","params":{"name":"a","Name":"b"}}`:       "!",
		`[{"method":"tools/call","params":{"name":"a"}}]`:                "!",
		`{"method":"tools/list"}{"method":"tools/call"}`:                 "!",
		`{"method":"tools/list"`:                                         "!",
		`x`:                                                              "!",
		`"tools/call"`:                                                   "!",
		`{"method":"tools/list","params":{}} // {"method":"tools/call"}`: "!",
		`{"method":"tools/list","param\u017f":{}}`:                       "!", // ſ folds to s
	} {
		name, call, err := toolCalled([]byte(line))
		got := name
		switch {
		case err != nil:
			got = "!"
		case !call:
			got = "-"
		}
		if got != want {
			t.Errorf("%s: %s, %v", line, got, err)
		}
	}
}

// Whoever reads a message as encoding/json does, without regard to case and the
// last of two, sees the same call.
func FuzzToolCalled(f *testing.F) {
	for _, s := range []string{`{"method":"tools/call","params":{"name":"a"}}`, `{"Method":"tools/call","params":{"Name":"a"}}`, `{"method":"x","METHOD":"tools/call"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		name, call, err := toolCalled([]byte(line))
		if err != nil {
			return
		}
		var m struct {
			Method string
			Params struct{ Name string }
		}
		if json.NewDecoder(strings.NewReader(line)).Decode(&m) != nil {
			return
		}
		if (m.Method == "tools/call") != call || call && m.Params.Name != name {
			t.Errorf("%q: %v %q, %+v", line, call, name, m)
		}
	})
}
