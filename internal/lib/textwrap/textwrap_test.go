package textwrap

import "testing"

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, text  string
		width, hang int
		want        string
	}{
		{"no limit", "one two three", 0, 2, "one two three"},
		{"fits", "one two", 7, 2, "one two"},
		{"breaks at blanks", "one two three four", 9, 2, "one two\n  three\n  four"},
		{"keeps breaks and indentation", "  one two three\nfour", 9, 2, "  one two\n    three\nfour"},
		{"a command stays whole", "run `workshop up --dry-run` now", 20, 0, "run\n`workshop up --dry-run`\nnow"},
		{"a long word is left alone", "a 0123456789012345 b", 10, 0, "a\n0123456789012345\nb"},
		{"wide characters", "日本 日本 日本", 9, 0, "日本 日本\n日本"},
		{"colours", "\x1b[31mone two\x1b[0m three", 13, 0, "\x1b[31mone two\x1b[0m three"},
		{"a short word has company", "one two three it", 13, 2, "one two\n  three it"},
		{"but not beyond the width", "one two threefour it", 17, 9, "one two threefour\n        it"},
		{"blanks within a line stay", "a  b cdef   ghij", 9, 0, "a  b cdef\nghij"},
		{"also before a short word", "one two three  it", 13, 2, "one two\n  three  it"},
		{"a backquote without a second", "one ` two three four", 9, 0, "one\n` two three four"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Lines(c.text, c.width, c.hang); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestParagraphs(t *testing.T) {
	const text = "one two\nthree four\n\n  kept as\n  it is\nfive"
	const want = "one two three\nfour\n\n  kept as\n  it is\nfive"
	if got := Paragraphs(text, 13); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Paragraphs(text, 0); got != text {
		t.Errorf("without a width: %q", got)
	}
}
