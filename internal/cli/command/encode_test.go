package command

import (
	"bytes"
	"testing"
)

// What a person can't see of a result is an escape, which reads as the same text.
func TestHiddenIsEscaped(t *testing.T) {
	var b bytes.Buffer
	s := NewProgram(&System{Out: &b})
	v := map[string]string{"a": "Answer\u00ad\u3164\ufe01.\U000e0041", "b": "Grüße 漢字"}
	if err := s.WriteJSON(v); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteYAML(v); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"a\": \"Answer\\u00ad\\u3164\\ufe01.\\udb40\\udc41\",\n  \"b\": \"Grüße 漢字\"\n}\n" +
		"a: \"Answer\\u00AD\\u3164\\uFE01.\\U000E0041\"\nb: Grüße 漢字\n"
	if got := b.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
