package firewall

import (
	"strings"
	"testing"
)

// Every refusal can be explained, and what can be opened says by what.
func TestWhy(t *testing.T) {
	for _, reason := range []string{ReasonDenied, ReasonNone, ReasonName, ReasonPort, ReasonInvalid} {
		if Why(reason, "", "") == "" {
			t.Errorf("%s isn't explained", reason)
		}
	}
	for line, want := range map[string]string{
		"workshop.yaml:7":                         "a deny line has it, and deny always wins; take that line out to allow it",
		LiveLine + ", until 2026-11-22T00:03:48Z": "denied by a live change; `workshop firewall show` lists live changes, `workshop firewall reload --reset` drops them",
	} {
		if got := Why(ReasonDenied, "a.example.org", line); got != want {
			t.Errorf("denied by %s: %q, want %q", line, got, want)
		}
	}
	for c := Private; c <= Translated; c++ {
		why := Why(c.String(), "", "")
		if opens := strings.Contains(why, "opens it") && !strings.Contains(why, "nothing opens it"); why == "" || opens != c.Openable() {
			t.Errorf("%v: %q", c, why)
		}
	}
}
