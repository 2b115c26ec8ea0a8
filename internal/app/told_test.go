package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
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
	said.Reset()
	one := Opening{Line: "a.example.org", Command: "workshop firewall allow a.example.org"}
	h.tellRefused([]Refusal{{Target: "a.example.org:443", Name: "a.example.org", Opening: one}, {Target: "a.example.org:80", Name: "a.example.org", Opening: one}})
	h.tellRefused([]Refusal{{Target: "a.example.org", Name: "a.example.org", Opening: one}})
	if strings.Count(said.String(), one.Command) != 1 {
		t.Errorf("what one command opens: got %q", said.String())
	}
}

// A path that a program printed is below the directory that its shell changed to, which
// nobody knows: no place is claimed for it.
func TestPlaced(t *testing.T) {
	paths := []string{"../.git/x", "/reference/a"}
	for args, all := range map[string]bool{
		`{"command": "echo a > ../.git/x"}`:                   true,
		`{"command": "abcd x; echo -Cx"}`:                     true,
		`{"path": "cd x"}`:                                    true,
		`{"command": "cd src && echo a > ../.git/x"}`:         false,
		`{"command": "true;cd src; touch x"}`:                 false,
		`{"argv": ["git", "-C", "src", "commit", "-m", "x"]}`: false,
		`{"argv": ["sh", "-c", "(cd src; touch ../.git/x)"]}`: false,
	} {
		want := paths
		if !all {
			want = paths[1:]
		}
		if got, unknown := placed(json.RawMessage(args), paths); !slices.Equal(got, want) || unknown == all {
			t.Errorf("%s: got %q, unknown %v, want %q", args, got, unknown, want)
		}
	}
}

// The guard can't tell workers of a room apart: who else has it is told.
func TestSharers(t *testing.T) {
	p := &Project{Compiled: &compose.Compiled{Policy: &firewall.Policy{Rooms: []firewall.RoomPolicy{{Workers: []string{"a", "b", "c"}}, {Workers: []string{"d"}}}}}}
	for worker, want := range map[string][]string{"b": {"a", "c"}, "d": nil, "none": nil} {
		if got := p.sharers(worker); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", worker, got, want)
		}
	}
	if got := (&Project{}).sharers("a"); got != nil {
		t.Errorf("without a network: got %q", got)
	}
}
