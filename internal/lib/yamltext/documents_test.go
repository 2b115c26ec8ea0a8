package yamltext

import "testing"

func TestSecondDocument(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int // -1: none
	}{
		{"one", "a: 1\n", -1},
		{"empty", "", -1},
		{"one between marks", "# c\n%YAML 1.1\n---\na: 1\n...\n# end\n\n", -1},
		{"only marks", "...\n---\n...\n", -1},
		{"two", "a: 1\n---\nb: 1\n", 5},
		{"two after a comment", "# c\n---\na: 1\n---\nb: 1\n", 13},
		{"two after the end", "a: 1\n...\n# c\nb: 1\n", 13},
		{"two after the end, with a directive", "a: 1\n...\n%YAML 1.1\n---\n", 19},
		{"two in one line", "--- a\n--- b", 6},
		{"empty ones", "---\n---\n", 4},
		{"CRLF", "a: 1\r\n---\r\nb: 1\r\n", 6},
		{"a text", "a: |\n  ---\n  b\n----\n", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, from := range []int{0, 3} {
				data := append([]byte("\ufeff"[:from]), c.text...)
				at, found := SecondDocument(data, from)
				if found != (c.want >= 0) || found && at != c.want+from {
					t.Errorf("from %d: %d, %v; want %d", from, at, found, c.want)
				}
			}
		})
	}
}
