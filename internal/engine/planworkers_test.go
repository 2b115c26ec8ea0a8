package engine

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
)

// TestPlanWorkersOnly: an engine without rooms gets steps for workers alone,
// and those whose lines change are made anew.
func TestPlanWorkersOnly(t *testing.T) {
	up := func(d Desired, o Observed) *Plan {
		t.Helper()
		o.WorkersOnly = true
		p, err := PlanUp(d, o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	d := desired()
	first := up(d, Observed{Project: "p", Images: map[string]string{"worker:1": "sha256:worker", "sha256:init": "sha256:init"}})
	text := first.String()
	for _, no := range []string{"room", "guard", "policy", "sockets", "network"} {
		if strings.Contains(text, no) {
			t.Errorf("%s is in\n%s", no, text)
		}
	}
	for _, want := range []string{"container/p-a-1: create", "container/p-c-1: start", "volume/p_copy-1: fill"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if d.Compiled.Roles["room"] != compose.RoleRoom || len(d.Compiled.Project.Services) != 5 {
		t.Error("the caller's project was changed")
	}

	seen := running(first.Desired)
	seen.Networks = nil
	if p := up(d, seen); !p.Empty() {
		t.Errorf("again:\n%s", p)
	}
	allow(&d)
	text = up(d, seen).String()
	if !strings.Contains(text, "container/p-a-1: create (configuration changed)") || strings.Contains(text, "p-c-1: create") || strings.Contains(text, "reload") {
		t.Errorf("with other lines:\n%s", text)
	}
	p, err := PlanRestart(d, func() Observed { o := seen; o.WorkersOnly = true; return o }())
	if err != nil || strings.Contains(p.String(), "room") {
		t.Errorf("restart: %v\n%s", err, p)
	}
}
