package shellquote

import "testing"

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"a/b.c": "a/b.c", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "$x": "'$x'"} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	for in, want := range map[string]string{"a/-b": "a/-b", "-rf/b": "./-rf/b", "-a b": "'./-a b'", "/-x": "/-x"} {
		if got := Path(in); got != want {
			t.Errorf("Path(%q) = %s, want %s", in, got, want)
		}
	}
}
