package worker

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/guard/events"
)

// Lines come once, leave the program's own line whole, wait for a full-screen
// program, and are no more than somebody can read.
func TestRefusedWatch(t *testing.T) {
	var shown strings.Builder
	w := &refusedWatch{out: io.Discard, err: &shown, worker: "w", stop: func() {}, waiting: app.Refusals{Worker: "w"}, timed: true, pasteable: (&command.System{}).Pasteable} // no timer: show is called here
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
		return "workshop: refused " + target + " (not allowed); to allow it: `workshop firewall allow " + host + " --worker w`\r\n"
	}
	fmt.Fprint(w, "$ ")
	deny("a.example.org", 0, "dns")
	deny("a.example.org", 443, "tcp")
	expect("a look-up and its connection, above the prompt", "\r\x1b[K"+line("a.example.org:443", "a.example.org")+"$ ")
	deny("a.example.org", 0, "dns")
	deny("a.example.org", 443, "tcp")
	w.add(events.Line{Verdict: events.Deny, Workers: []string{"other"}, Name: "o.example.org", Reason: firewall.ReasonName}, now)
	w.add(events.Line{Verdict: events.Allow, Workers: []string{"w"}, Name: "ok.example.org", Reason: firewall.ReasonAllowed}, now)
	expect("again, another worker's, and what is let through", "")
	deny("a.example.org", 22, "tcp")
	expect("another port", "\r\x1b[K"+line("a.example.org:22", "a.example.org:22")+"$ ")
	fmt.Fprint(w, "ls\r\nmade\r\n")
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
	expect("left", all.String()+"workshop: and 3 more refused: `workshop firewall log --denied`\r\n")
	deny("late.example.org", 443, "tcp")
	expect("more than a minute's lines", "")
	if x := w.told[len(w.told)-1].Refusal; !w.hasTold(x) || w.hasTold(app.Refusal{Target: "late.example.org:443", Name: "late.example.org", Reason: firewall.ReasonName}) {
		t.Error("what was shown isn't what the end leaves out")
	}
	now = now.Add(2 * sameAgain)
	w.signs, w.more = &app.Signs{}, 0
	output := w.signs.Tee(w)
	fmt.Fprint(output, "ssh: Could not resolve hostname s.example.org: Name or service not known\r\n$ ")
	deny("s.example.org", 0, "dns")
	expect("by ssh", "\r\x1b[K"+line("s.example.org:22", "s.example.org:22")+"$ ")
	if x := (app.Refusal{Target: "s.example.org:22", Name: "s.example.org", Reason: firewall.ReasonName}); !w.hasTold(x) {
		t.Error("what was shown for ssh isn't what the end leaves out")
	}
	deny("s.example.org", 0, "dns")
	expect("again", "")
	now = now.Add(2 * sameAgain)
	deny("s.example.org", 0, "dns")
	expect("by another program", "\r\x1b[K"+line("s.example.org", "s.example.org")+"$ ")
	fmt.Fprint(output, "\r\n")
	now = now.Add(2 * sameAgain)
	deny("end.example.org", 443, "tcp")
	w.end()
	expect("after the end", "")
	if (*refusedWatch)(nil).hasTold(app.Refusal{}) {
		t.Error("nothing was shown")
	}
}
