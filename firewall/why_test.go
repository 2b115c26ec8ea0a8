package firewall

import (
	"strings"
	"testing"
)

// Every refusal can be explained, and what can be opened says by what.
func TestWhy(t *testing.T) {
	for _, reason := range []string{ReasonDenied, ReasonNone, ReasonName, ReasonPort, ReasonInvalid} {
		if Why(reason) == "" {
			t.Errorf("%s isn't explained", reason)
		}
	}
	for c := Private; c <= Translated; c++ {
		why := Why(c.String())
		if opens := strings.Contains(why, "opens it") && !strings.Contains(why, "nothing opens it"); why == "" || opens != c.Openable() {
			t.Errorf("%v: %q", c, why)
		}
	}
}
