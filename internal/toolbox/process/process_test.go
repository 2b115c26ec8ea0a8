package process

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for text, says := range map[string]string{
		"":                                  "can't be read",
		"{}":                                "of version 0",
		`{"version":2,"unknown":1}`:         "of version 2",
		`{"version":1,"unknown":1}`:         "unknown",
		`{"version":1} {}`:                  "can't be read",
		`{"version":1,"mounts":"x"}`:        "can't be read",
		strings.Repeat(" ", maxSpec) + "{}": "more than",
		`{"version":1,"workdir":"/w"}`:      "",
	} {
		s, err := Read(strings.NewReader(text))
		if says == "" {
			if err != nil || s.Workdir != "/w" {
				t.Errorf("%q: %+v, %v", text, s, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v, want %q", text, err, says)
		}
	}
}

// FuzzRead: what is read comes out the same when it is written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"version":1,"grant":{"worker":"w","tools":[{"name":"shell"}]},"env":["A=b"],"mounts":[{"target":"/","source":"/x","read_only":true}],"landlock":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		once, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(bytes.NewReader(once))
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice, _ := json.Marshal(again); !bytes.Equal(once, twice) {
			t.Errorf("%s\n%s", once, twice)
		}
	})
}
