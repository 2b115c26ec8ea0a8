package clip

import "testing"

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		name string
		clip func(string, int) string
		s    string
		n    int
		want string
	}{
		{"bytes: as long as allowed", Bytes, "abcd", 4, "abcd"},
		{"bytes: longer", Bytes, "abcde", 4, "abcd…"},
		{"bytes: inside a character", Bytes, "abcä", 4, "abc\xc3…"},
		{"text: as long as allowed", Text, "ab\xff", 3, "ab\xff"},
		{"text: inside a character", Text, "abcä", 4, "abc…"},
		{"text: not valid", Text, "a\xffcdef", 4, "acd…"},
		{"runes: as long as allowed", Runes, "äöüß", 4, "äöüß"},
		{"runes: longer", Runes, "äöüßx", 4, "äöüß…"},
		{"runes: not valid", Runes, "\xff\xff\xff", 2, "\ufffd\ufffd…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.clip(tt.s, tt.n); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
