package shellquote

import "testing"

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"a/b.c": "a/b.c", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "$x": "'$x'"} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
}
