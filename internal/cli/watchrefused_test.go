package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/guard/events"
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

// Lines come once, leave the program's own line whole, wait for a full-screen
// program, and are no more than somebody can read.
func TestRefusedWatch(t *testing.T) {
	var shown strings.Builder
	w := &refusedWatch{out: io.Discard, err: &shown, worker: "w", stop: func() {}, waiting: app.Refusals{Worker: "w"}, timed: true} // no timer: show is called here
	now := time.Now().Add(-time.Hour)
	deny := func(name string, port uint16, protocol string) {
		suggest := name
		if port == 22 {
			suggest += ":22"
		}
		w.add(events.Line{Verdict: events.Deny, Workers: []string{"w"}, Name: name, Port: port, Protocol: protocol, Reason: firewall.ReasonName, Suggest: suggest}, now)
	}
	expect := func(step, want string) {
		t.Helper()
		if !w.late {
			w.show(now)
		}
		if got := shown.String(); got != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
		shown.Reset()
	}
	line := func(target, host string) string {
		return "workshop: refused " + target + " (not allowed); to allow it: workshop firewall allow " + host + " --worker w\r\n"
	}
	fmt.Fprint(w, "$ ")
	deny("a.example.org", 0, "dns")
	deny("a.example.org", 443, "tcp")
	expect("a look-up and its connection", "\r\n"+line("a.example.org:443", "a.example.org"))
	deny("a.example.org", 0, "dns")
	deny("a.example.org", 443, "tcp")
	w.add(events.Line{Verdict: events.Deny, Workers: []string{"other"}, Name: "o.example.org", Reason: firewall.ReasonName}, now)
	w.add(events.Line{Verdict: events.Allow, Workers: []string{"w"}, Name: "ok.example.org", Reason: firewall.ReasonAllowed}, now)
	expect("again, another worker's, and what is let through", "")
	deny("a.example.org", 22, "tcp")
	expect("another command", line("a.example.org:22", "a.example.org:22"))
	now = now.Add(sameAgain)
	deny("a.example.org", 443, "tcp")
	expect("a minute later", line("a.example.org:443", "a.example.org"))

	now = now.Add(sameAgain)
	fmt.Fprint(w, "\x1b[?10")
	fmt.Fprint(w, "49h")
	var all strings.Builder
	for i := range maxLive + 3 {
		name := fmt.Sprintf("n%d.example.org", i)
		deny(name, 443, "tcp")
		if i < maxLive {
			all.WriteString(line(name+":443", name))
		}
	}
	w.show(now)
	if !w.late || shown.Len() > 0 {
		t.Errorf("on the alternate screen: %q", shown.String())
	}
	now = time.Now() // the clock of what is written
	fmt.Fprint(w, "\x1b[?1049l")
	expect("left", all.String()+"workshop: and 3 more refused: workshop firewall log --denied\r\n")
	deny("late.example.org", 443, "tcp")
	expect("more than a minute's lines", "")
	if x := w.told[len(w.told)-1].Refusal; !w.hasTold(x) || w.hasTold(app.Refusal{Target: "late.example.org:443", Name: "late.example.org", Reason: firewall.ReasonName}) {
		t.Error("what was shown isn't what the end leaves out")
	}
	now = now.Add(2 * sameAgain)
	deny("end.example.org", 443, "tcp")
	w.end()
	expect("after the end", "")
	if (*refusedWatch)(nil).hasTold(app.Refusal{}) {
		t.Error("nothing was shown")
	}
}
