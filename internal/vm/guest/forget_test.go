package guest

import "testing"

func TestTooMany(t *testing.T) {
	for _, c := range []struct {
		inodes string
		nodes  int64
		want   bool
	}{
		{"5000\t1000\n", 10_000, false}, {"7001\t1000\n", 10_000, true}, {"6000\t1000\n", 10_000, false}, {"", 10, false}, {"x", 10, false},
	} {
		if got := tooMany(c.inodes, c.nodes); got != c.want {
			t.Errorf("%q of %d: got %v", c.inodes, c.nodes, got)
		}
	}
}
