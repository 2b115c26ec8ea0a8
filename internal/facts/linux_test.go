//go:build linux

package facts

import (
	"slices"
	"strings"
	"testing"
)

func TestParseMountinfo(t *testing.T) {
	in := "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n" +
		`22 28 0:21 / /work/with\040space\134x ro - tmpfs none rw` + "\nshort line\n"
	got, err := parseMountinfo(strings.NewReader(in))
	if want := []string{"/mnt2", `/work/with space\x`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("parseMountinfo = %q, %v; want %q", got, err, want)
	}
}

func FuzzParseMountinfo(f *testing.F) {
	f.Add("36 35 98:0 / /a\\040b rw - x y z\n")
	f.Fuzz(func(t *testing.T, in string) {
		points, _ := parseMountinfo(strings.NewReader(in))
		for _, p := range points {
			if p == "" {
				t.Error("an empty mount point")
			}
		}
	})
}
