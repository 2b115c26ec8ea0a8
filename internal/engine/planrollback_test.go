package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlanRollBack(t *testing.T) {
	d := desired()
	up := running(d)
	renew := func(o *Observed, service string) { edit(o, service, func(c *Container) { c.ID += "-new" }) }
	for _, tc := range []struct {
		name        string
		before, now func(*Observed)
		want        []string
	}{
		{"nothing was there", func(o *Observed) { *o = Observed{Project: "p"} }, func(*Observed) {}, []string{
			"container/p-a-1: remove", "container/p-b-1: remove", "container/p-c-1: remove", "container/p-guard-1: remove", "container/p-room-1: remove",
			"network/p_default: remove", "volume/p_copy-1: remove", "volume/p_policy: remove", "volume/p_sockets: remove",
		}},
		{"a worker for the first time", func(o *Observed) { drop(o, "b") }, func(*Observed) {}, []string{"container/p-b-1: remove"}},
		{"with its volume", func(o *Observed) {
			drop(o, "b")
			o.Volumes = WithoutObject(slices.Clone(o.Volumes), "p_copy-1")
		}, func(*Observed) {}, []string{"container/p-b-1: remove", "volume/p_copy-1: remove"}},
		{"what runs was replaced", func(*Observed) {}, func(o *Observed) { renew(o, "a"); renew(o, "guard") }, nil},
		{"all was stopped, and some replaced", func(o *Observed) {
			for _, s := range []string{"a", "b", "c", "guard", "room"} {
				edit(o, s, func(c *Container) { c.State = "exited" })
			}
		}, func(o *Observed) { renew(o, "room"); edit(o, "a", state("exited")); drop(o, "b"); drop(o, "c") }, []string{
			"container/p-guard-1: stop", "container/p-room-1: remove",
		}},
		{"a room for the first time, with a worker that was replaced", func(o *Observed) { drop(o, "room") }, func(o *Observed) { renew(o, "a") }, nil},
		{"somebody's own container", func(o *Observed) { drop(o, "b") }, func(o *Observed) {
			edit(o, "b", func(c *Container) { c.OneOff = true })
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, now := running(d), running(d)
			tc.before(&before)
			tc.now(&now)
			for i := range now.Volumes {
				now.Volumes[i].Labels[LabelVolume] = strings.TrimPrefix(now.Volumes[i].Name, "p_")
			}
			p := PlanRollBack(d.Compiled, before, now)
			checkOrder(t, p)
			var got []string
			for _, s := range p.Steps {
				got = append(got, s.Target+": "+s.Op.String())
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
	if p := PlanRollBack(d.Compiled, up, up); len(p.Steps) > 0 {
		t.Errorf("nothing changed, and it does:\n%s", p)
	}
}
