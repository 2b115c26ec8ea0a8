package main

import (
	"slices"
	"testing"
	"unicode/utf8"
)

// The table is for people: it fits into a terminal of 80 columns.
func TestTableFits(t *testing.T) {
	for _, try := range slices.Concat(allowed, refused) {
		for _, seen := range try.want {
			for _, beside := range append([]string{""}, try.control...) {
				if line := row("✓ "+try.text, seen, "999.9 ms", beside); utf8.RuneCountInString(line) > 80 {
					t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
				}
			}
		}
		if n := utf8.RuneCountInString(try.text); n > 37 {
			t.Errorf("%q has %d columns", try.text, n)
		}
	}
}
