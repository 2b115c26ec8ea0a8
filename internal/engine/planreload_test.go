package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
)

func TestOnlyReload(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Observed)
		only   bool
		more   []string
	}{
		"running":       {func(*Observed) {}, true, nil},
		"worker exited": {func(o *Observed) { edit(o, "c", state("exited")) }, false, []string{"start c (exited)"}},
		"worker without a mount": {func(o *Observed) {
			edit(o, "c", func(c *Container) {
				c.Role, c.State, c.ExitCode = compose.RoleWorker.String(), "exited", pid1.MountLost
			})
		}, false,
			[]string{"start c (exited: a mount was replaced, renamed or removed on the host)"}},
		"worker of files that are gone": {func(o *Observed) { edit(o, "c", func(c *Container) { c.Replaced = []string{"/src"} }) }, false,
			[]string{"recreate c (a mount was replaced, renamed or removed on the host)"}},
		"two things": {func(o *Observed) { drop(o, "c"); edit(o, "guard", func(c *Container) { c.ConfigHash = "old" }) }, false,
			[]string{"recreate guard (configuration changed)", "create c"}},
		"an orphan": {func(o *Observed) {
			o.Containers = append(o.Containers, Container{ID: "id-old", Name: "p-old-1", Service: "old", State: "running"})
			o.Volumes = append(o.Volumes, Object{Name: "p_old"})
		}, false, []string{"remove old (no longer in the workshop)", "remove volume p_old (no longer in the workshop)"}},
		"image missing": {func(o *Observed) { drop(o, "c"); o.Images = nil }, false, []string{"pull image worker:1", "create c"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			o := running(d)
			allow(&d)
			tc.change(&o)
			p, err := PlanUp(d, o)
			if err != nil {
				t.Fatal(err)
			}
			only, lines := OnlyReload(p)
			var more []string
			for _, l := range lines {
				more = append(more, l.String())
			}
			if diff := cmp.Diff(tc.more, more); only != tc.only || diff != "" || p.Empty() {
				t.Errorf("only %v, empty %v; more (-want +got):\n%s\n%s", only, p.Empty(), diff, p)
			}
		})
	}
}

// What a reload takes of a plan: workers stay as they are, unless one is in a
// room that isn't its own (B40).
func TestB40_NoWorkers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Observed)
		only   bool
	}{
		"worker configured otherwise": {func(o *Observed) { edit(o, "a", func(c *Container) { c.ConfigHash = "old" }) }, true},
		"worker missing":              {func(o *Observed) { drop(o, "c") }, true},
		"worker in another room":      {func(o *Observed) { edit(o, "a", func(c *Container) { c.NetworkOf = "id-old" }) }, false},
		"room configured otherwise":   {func(o *Observed) { edit(o, "room", func(c *Container) { c.ConfigHash = "old" }) }, false},
		"guard configured otherwise":  {func(o *Observed) { edit(o, "guard", func(c *Container) { c.ConfigHash = "old" }) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			o := running(d)
			allow(&d)
			tc.change(&o)
			d.NoWorkers = true
			p, err := PlanUp(d, o)
			if err != nil {
				t.Fatal(err)
			}
			if only, more := OnlyReload(p); only != tc.only || p.Empty() {
				t.Errorf("only %v (%v), empty %v\n%s", only, more, p.Empty(), p)
			}
		})
	}
}
