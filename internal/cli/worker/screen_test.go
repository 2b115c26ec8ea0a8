package worker

import (
	"fmt"
	"strings"
	"testing"
)

// Where a line of ours has room, however the output is cut into writes.
func TestScreen(t *testing.T) {
	for _, c := range []struct {
		name, output string
		busy, text   bool
	}{
		{"nothing", "", false, false},
		{"a prompt", "~ $ ", false, true},
		{"a line", "made\r\n", false, false},
		{"a line and bracketed paste", "ls\n\x1b[?2004l\r", false, false},
		{"progress", "40%\r", false, true},
		{"vim", "\x1b[?1049h\x1b[22;0;0t\x1b[?1h", true, false},
		{"vim, left", "\x1b[?1049htext\r\n\x1b[?1049l\r\x1b[?1l", false, false},
		{"1047", "\x1b[?1047h", true, false},
		{"47", "\x1b[?47h", true, false},
		{"47, left by 1049", "\x1b[?47h\x1b[?1049l", false, false},
		{"among others", "\x1b[?25;1049;7h", true, false},
		{"not the private mode", "\x1b[1049h", false, false},
		{"another mode", "\x1b[?10490h\x1b[?149h", false, false},
		{"asked for, not set", "\x1b[?1049$p", false, false},
		{"within a title", "\x1b]0;[?1049h\a", false, false},
		{"a title", "\x1b]0;name", true, false},
		{"a title, ended", "\x1b]0;name\x1b\\", false, false},
		{"a device string", "\x1bP1$r\n[?1049h", true, false},
		{"half of a sequence", "\x1b[?10", true, false},
		{"given up", "\x1b[?10\x18", false, false},
		{"a control within", "\x1b[?10\r49h", true, false},
		{"a character set", "\x1b(B", false, false},
		{"reset", "\x1b[?1049h\x1bc", false, false},
		{"too long", "\x1b[?" + strings.Repeat("1;", 1000) + "1049h", false, false},
	} {
		for _, size := range []int{1, 2, 3, 5, 4096} {
			var s screen
			for rest := c.output; rest != ""; {
				n := min(size, len(rest))
				fmt.Fprint(&s, rest[:n])
				rest = rest[n:]
			}
			if s.busy() != c.busy || s.text != c.text || len(s.params) > maxControl {
				t.Errorf("%s in writes of %d: busy %v, text %v, want %v, %v", c.name, size, s.busy(), s.text, c.busy, c.text)
			}
		}
	}
}

// The line that is written again is what makes it, without what asks the terminal.
func TestRedraw(t *testing.T) {
	for _, c := range []struct{ name, output, again string }{
		{"nothing", "", ""},
		{"a prompt", "made\r\n\x1b[?2004h\x1b]0;title\a\x1b[32m~ $\x1b[0m ", "\x1b[32m~ $\x1b[0m "},
		{"typed and deleted", "$ lx\b\x1b[Ks", "$ lx\b\x1b[Ks"},
		{"progress", "40%\r50%", "40%\r50%"},
		{"what asks", "$ \x1b[6n\x1b[c", "$ "},
		{"another line", "$ \x1b[2A", ""},
		{"left a full screen", "\x1b[?1049hvim\x1b[?1049l", ""},
		{"and went on", "\x1b[?1049hvim\x1b[?1049l\r\n$ ", "$ "},
		{"too long", strings.Repeat("x", maxLine+1), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s screen
			fmt.Fprint(&s, c.output)
			if _, again := s.redraw(); again != c.again {
				t.Errorf("got %q, want %q", again, c.again)
			}
		})
	}
}
