package workshop

import "testing"

func TestSizeString(t *testing.T) {
	for size, want := range map[Size]string{
		2 << 30: "2G", 1536 << 20: "1536M", 1000: "1000", 64 << 10: "64K", 0: "0", 1 << 40: "1T",
	} {
		if got := size.String(); got != want {
			t.Errorf("Size(%d).String() = %q, want %q", size, got, want)
		}
	}
}
