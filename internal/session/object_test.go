package session

import "testing"

// Of a key that stands twice, all see the same one.
func TestObjectHasEachKeyOnce(t *testing.T) {
	for args, want := range map[string]string{
		`{"q":{"sql":"drop","sql":"select"},"q2":[{"a":1,"a":2}]}`: `{"q":{"sql":"select"},"q2":[{"a":2}]}`,
		` {"a":1,"a":12345678901234567890,"b":"<é>"} `:             `{"a":12345678901234567890,"b":"<é>"}`,
		`[]`: "", `null`: "", `{} {}`: "", `{`: "",
	} {
		got, err := object("x", []byte(args))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s %v", args, got, err)
		}
	}
}
