package app

import (
	"fmt"
	"strings"
	"testing"
)

// A call that is refused many hosts has a few lines, and no number of calls ends them.
func TestTellRefused(t *testing.T) {
	var said strings.Builder
	h := &Tools{env: testEnv(&Env{}, &said), toldPerson: map[string]bool{}}
	hosts := func(call, n int) (list []Refusal) {
		for i := range n {
			list = append(list, Refusal{Target: fmt.Sprintf("h%d.c%d.example.org:443", i, call)})
		}
		return list
	}
	for call := range 100 {
		said.Reset()
		h.tellRefused(hosts(call, 150))
		if got := said.String(); strings.Count(got, "\n") != maxDenials+1 || !strings.Contains(got, "refused h0.c") || !strings.HasSuffix(got, "workshop: and 145 more refused: `workshop firewall log --denied`\n") {
			t.Fatalf("call %d: got %q", call, got)
		}
	}
	h.tellRefused(hosts(200, 2))
	said.Reset()
	if h.tellRefused(hosts(200, 2)); said.String() != "" {
		t.Errorf("the same again: got %q", said.String())
	}
}
