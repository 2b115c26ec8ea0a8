package yamltext

import "testing"

func TestCheck(t *testing.T) {
	for text, at := range map[string]int{
		"":                -1,
		"a: b\r\nc:\td\n": -1,
		"é עברית فارسی\u200cها 👩\u200d💻 ❤\ufe0f 中文: \u0601": -1,
		"# reads\u2028tools: Bash": 7, "# reads\u2029x": 7, "# reads\u0085x": 7, "# reads\rx": 7, "x\r": 1,
		"\ufeffx": 0, "a\x00": 1, "\x1b[2J": 0, "a\x7f": 1, "a\u009b": 1, "a\xff": 1,
		"# \u202etxt": 2, "\u2066": 0, "\u200e": 0, "\u061c": 0, // direction
		"a\u200bb": 1, "a\u00adb": 1, "\u2060": 0, "\U000e0041": 0, "\u3164": 0, // nothing to see
	} {
		got, bad := Check([]byte(text), 0)
		if bad != (at >= 0) || bad && got.At != at || bad && (got.Summary == "" || got.Hint == "" || got.Len < 1) {
			t.Errorf("%q: got %+v, %v, want %d", text, got, bad, at)
		}
	}
	if _, bad := Check([]byte("\ufeffx"), 3); bad {
		t.Error("a byte order mark that is passed over is refused")
	}
}
