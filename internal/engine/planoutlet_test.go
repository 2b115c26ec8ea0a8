package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
)

// withOutlet gives the worker a in the room an outlet.
func withOutlet(d Desired) Desired {
	c := *d.Compiled
	p := *c.Project
	c.Project, p.Services, p.Volumes = &p, types.Services{}, types.Volumes{"outlet": {}}
	c.Roles, c.RoomOf = map[string]compose.Role{"outlet": compose.RoleOutlet}, map[string]string{"outlet": "room"}
	for k, v := range d.Compiled.Project.Services {
		p.Services[k] = v
	}
	for k, v := range d.Compiled.Project.Volumes {
		p.Volumes[k] = v
	}
	for k, v := range d.Compiled.Roles {
		c.Roles[k] = v
	}
	for k, v := range d.Compiled.RoomOf {
		c.RoomOf[k] = v
	}
	mount := types.ServiceVolumeConfig{Type: types.VolumeTypeVolume, Source: "outlet", Target: compose.OutletDir}
	outlet := p.Services["room"]
	outlet.Name, outlet.Volumes = "outlet", []types.ServiceVolumeConfig{mount}
	a := p.Services["a"]
	a.Volumes = append(slices.Clone(a.Volumes), mount)
	p.Services["outlet"], p.Services["a"] = outlet, a
	d.Compiled = &c
	return d
}

// TestPlanOutlet: the worker is started when its room is ready, beside its outlet.
func TestPlanOutlet(t *testing.T) {
	d := withOutlet(desired())
	up, err := PlanUp(d, Observed{Project: "p", Images: map[string]string{"worker:1": "sha256:worker", "sha256:init": "sha256:init"}})
	if err != nil {
		t.Fatal(err)
	}
	seen := running(up.Desired)
	restart, err := PlanRestart(d, seen)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Plan{"up": up, "restart": restart} {
		t.Run(name, func(t *testing.T) {
			step := func(op Op, service string) Step {
				i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Op == op && s.Service == service })
				if i < 0 {
					t.Fatalf("no step for %s in\n%s", service, p)
				}
				return p.Steps[i]
			}
			a := step(OpStartContainer, "a").After
			if !slices.Contains(a, step(OpWaitReady, "room").ID) {
				t.Errorf("a doesn't wait for its room:\n%s", p)
			}
			if slices.Contains(a, step(OpStartContainer, "outlet").ID) || slices.Contains(a, step(OpWaitReady, "outlet").ID) {
				t.Errorf("a waits for its outlet:\n%s", p)
			}
			if !slices.Contains(step(OpStartContainer, "outlet").After, step(OpStartContainer, "room").ID) {
				t.Errorf("the outlet doesn't wait for its room:\n%s", p)
			}
			if slices.Contains(step(OpStartContainer, "c").After, step(OpWaitReady, "room").ID) {
				t.Errorf("a worker of this machine's kernel waits:\n%s", p)
			}
			waits := map[string]int{}
			for _, s := range p.Steps {
				if s.Op == OpWaitReady {
					waits[s.Service]++
				}
			}
			for service, n := range waits {
				if n != 1 {
					t.Errorf("%s is awaited %d times", service, n)
				}
			}
		})
	}
	if again, err := PlanUp(d, seen); err != nil || !again.Empty() {
		t.Errorf("again: %v\n%s", err, again)
	}
	seen.Containers = slices.DeleteFunc(seen.Containers, func(c Container) bool { return c.Service == "room" })
	if p, err := PlanUp(d, seen); err != nil || !strings.Contains(p.String(), "container/p-outlet-1: create (its room is recreated)") {
		t.Errorf("without its room: %v\n%s", err, p)
	}
}
