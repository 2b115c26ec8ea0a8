package toolbox

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/tool"
)

func TestKept(t *testing.T) {
	for _, c := range []struct {
		name  string
		max   int
		parts []string
		want  tool.Output
		rest  string
		last  string
	}{
		{"nothing", 8, nil, tool.Output{}, "", ""},
		{"all", 8, []string{"abcd", "efgh"}, tool.Output{Text: "abcdefgh", Bytes: 8}, "", "abcdefgh"},
		{"one more", 8, []string{"abcd", "efgh", "i"}, tool.Output{Text: "abcd\n[… 1 bytes left out …]\nfghi", Bytes: 9, Omitted: 1, NextLine: 1}, "abcdefghi", "fghi"},
		{"at once", 8, []string{"abcdefghijkl"}, tool.Output{Text: "abcd\n[… 4 bytes left out …]\nijkl", Bytes: 12, Omitted: 4, NextLine: 1}, "abcdefghijkl", "ijkl"},
		{"whole lines", 20, []string{"1\n22\n333\n4444\n55555\n66\n7\n"}, tool.Output{Text: "1\n22\n333\n[… 11 bytes left out …]\n66\n7\n", Bytes: 25, Omitted: 11, NextLine: 4}, "1\n22\n333\n4444\n55555\n66\n7\n", "7"},
		{"half a line is more than half", 20, []string{"1\n", strings.Repeat("x", 30), "\n2\n"}, tool.Output{Text: "1\nxxxxxxxx\n[… 15 bytes left out …]\nxxxxxxx\n2\n", Bytes: 35, Omitted: 15, NextLine: 2}, "1\n" + strings.Repeat("x", 30) + "\n2\n", "2"},
		{"bytes", 8, []string{"\x00\xff\n"}, tool.Output{Text: "\x00\uFFFD\n", Bytes: 3, Binary: true}, "", ""},
		{"a progress bar", 100, []string{"begin\n 10 %\r 20 %\r\x1b[K\x1b[1;32m 30 %\x1b[0m\r\n\n \x1b]0;title\a\x1b]0;x\x1b\\\t\n"}, tool.Output{Text: "begin\n 10 %\r 20 %\r\x1b[K\x1b[1;32m 30 %\x1b[0m\r\n\n \x1b]0;title\a\x1b]0;x\x1b\\\t\n", Bytes: 60}, "", "30 %"},
		{"a long last line", 400, []string{strings.Repeat("ä", 150)}, tool.Output{Text: strings.Repeat("ä", 150), Bytes: 300}, "", strings.Repeat("ä", 120) + "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rest := ""
			k := &kept{max: c.max, rest: func(b []byte) { rest += string(b) }}
			for _, p := range c.parts {
				k.add([]byte(p))
			}
			if last, _ := k.lastLine(); last != c.last {
				t.Errorf("the last line is %q, want %q", last, c.last)
			}
			if got := k.output(); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if rest != c.rest {
				t.Errorf("the rest is %q, want %q", rest, c.rest)
			}
		})
	}
}
