package diag

import "testing"

func at(line, c1, c2 int) Range {
	return Range{Filename: "workshop.yaml", Start: Pos{line, c1, 0}, End: Pos{line, c2, 0}}
}

func TestSorted(t *testing.T) {
	l := List{{Summary: "c", Range: at(2, 1, 2)}, {Summary: "b", Range: at(1, 9, 10)}, {Summary: "a", Range: at(1, 2, 3)}}
	var got string
	for _, d := range l.Sorted() {
		got += d.Summary
	}
	if got != "abc" || l[0].Summary != "c" {
		t.Errorf("sorted = %q, original first = %q", got, l[0].Summary)
	}
}
