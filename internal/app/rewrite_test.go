package app

import (
	"strings"
	"testing"
)

// The shown difference is what changed, with its line numbers.
func TestChangedLines(t *testing.T) {
	for want, texts := range map[string][2]string{
		"+   2 | b":                        {"a\nc\n", "a\nb\nc\n"},
		"-   1 | x: [a]|+   1 | x: [a, b]": {"x: [a]\ny\n", "x: [a, b]\ny\n"},
		"+   3 | ":                         {"a\n\nb\n", "a\n\n\nb\n"},
		"":                                 {"a\n", "a\n"},
		"-   2 | b\t#|+   2 | b|+   3 | d": {"a\nb\t#\nc", "a\nb\nd\nc"},
	} {
		if got := strings.Join(changedLines([]byte(texts[0]), []byte(texts[1])), "|"); got != want {
			t.Errorf("%q: %q, want %q", texts, got, want)
		}
	}
}
