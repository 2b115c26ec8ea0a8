package sortfunc

import (
	"slices"
	"strings"
	"testing"
)

func TestStable(t *testing.T) {
	type pair struct{ key, number string }
	list := []pair{{"b", "1"}, {"a", "1"}, {"b", "2"}, {"c", "1"}, {"a", "2"}}
	for range 5 { // more elements than are sorted by insertion
		list = append(list, list...)
	}
	want := slices.Clone(list)
	compare := func(a, b pair) int { return strings.Compare(a.key, b.key) }
	slices.SortStableFunc(want, compare)
	Stable(list, compare)
	if !slices.Equal(list, want) {
		t.Errorf("got %v, want %v", list, want)
	}
	Stable[pair](nil, compare)
}
