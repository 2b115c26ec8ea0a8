package visible

import "testing"

func TestHidden(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		want bool
	}{
		{"Latin", "Answer. ß é", false},
		{"Latin, decomposed", "e\u0301", false},
		{"Greek, Cyrillic, Hebrew, Arabic", "λжאع", false},
		{"CJK", "漢字かなカナ한글", false},
		{"emoji", "🙂👩💻🏽⚠", false},
		{"symbols", "→│✓…·“”–", false},
		{"C0 and C1", "\x00\t\n\x1b\x7f\u0085\u009b", true},
		{"marks of direction", "\u061c\u200e\u200f\u202a\u202e\u2066\u2069", true},
		{"without width", "\u00ad\u200b\u200c\u200d\u2060\ufeff", true},
		{"blanks and separators", "\u00a0\u2003\u202f\u3000\u2028\u2029", true},
		{"fillers", "\u034f\u115f\u1160\u17b4\u2800\u3164\uffa0\U00016fe4", true},
		{"variation selectors", "\u180b\ufe00\ufe01\ufe0f\U000e0100", true},
		{"tags", "\U000e0001\U000e0041\U000e007f", true},
		{"not assigned, private", "\u0378\ue000\U000fffff", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range tt.text {
				if got := Hidden(r); got != tt.want {
					t.Errorf("%U: got %v, want %v", r, got, tt.want)
				}
			}
		})
	}
}
