package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/compose"
)

const cacheKey = "cache-a.npm"

// withCache gives worker a a cache for its grants.
func withCache(d Desired, digest string) Desired {
	c := *d.Compiled
	c.Caches = map[string]compose.Cache{cacheKey: {Worker: "a", Name: "npm", Target: "/caches/npm", Variables: []string{"npm_config_cache"}, User: "1000:1000"}}
	c.Project.Volumes[cacheKey] = types.VolumeConfig{Name: "p_" + cacheKey + "-" + digest, Labels: types.Labels{compose.LabelCache: "a/npm", compose.LabelDirectory: "/work/p"}}
	s := c.Project.Services["a"]
	v := volumeMount(cacheKey, "/caches/npm")
	v.ReadOnly = false
	value := "/caches/npm"
	s.Volumes, s.Environment = append(slices.Clone(s.Volumes), v), types.MappingWithEquals{"npm_config_cache": &value, "LANG": &value}
	c.Project.Services["a"] = s
	d.Compiled = &c
	return d
}

// cacheOf is the observed cache of a project.
func cacheOf(d Desired) Object {
	return Object{Name: VolumeName(d.Compiled.Project, cacheKey), Labels: VolumeLabels(d.Compiled, cacheKey)}
}

// cacheSteps are the steps about caches, in words.
func cacheSteps(p *Plan) (out []string) {
	for _, s := range p.Steps {
		if strings.HasPrefix(s.Target, "volume/p_cache-") {
			out = append(out, s.Op.String()+" "+strings.TrimPrefix(s.Target, "volume/p_cache-")+" ("+s.Cause+")")
		}
	}
	return out
}

func TestPlanCaches(t *testing.T) {
	const give = "fill a.npm-1 (its worker is not started yet)"
	for name, tc := range map[string]struct {
		change func(*Observed)
		only   []string
		want   []string
	}{
		"first up":      {func(o *Observed) { *o = Observed{Project: "p", Images: o.Images} }, nil, []string{"create a.npm-1 (not found)", give}},
		"after a down":  {func(o *Observed) { drop(o, "a") }, nil, []string{give}},
		"nothing to do": {func(*Observed) {}, nil, nil},
		"exited":        {func(o *Observed) { edit(o, "a", state("exited")) }, nil, []string{give}},
		"other grants": {func(o *Observed) {
			*o = running(withCache(desired(), "0"))
			o.Caches = []Object{cacheOf(withCache(desired(), "0"))}
		}, nil, []string{"create a.npm-1 (" + GrantsChanged + ")", give, "remove a.npm-0 (" + GrantsChanged + ")"}},
		"other grants, somebody has the old one": {func(o *Observed) {
			*o = running(withCache(desired(), "0"))
			o.Caches = []Object{cacheOf(withCache(desired(), "0"))}
			o.Containers = append(o.Containers, Container{ID: "x", Name: "p-a-run", Service: "a", OneOff: true, State: "running", Volumes: []string{"p_cache-a.npm-0"}})
		}, nil, []string{"create a.npm-1 (" + GrantsChanged + ")", give}},
		"other grants, not asked for": {func(o *Observed) {
			*o = running(withCache(desired(), "0"))
			o.Caches = []Object{cacheOf(withCache(desired(), "0"))}
		}, []string{"b"}, nil},
		"of another directory": {func(o *Observed) {
			drop(o, "a")
			o.Caches[0].Labels[compose.LabelDirectory] = "/work/other"
			o.Caches[0].Name = "p_cache-a.npm-9"
		}, nil, []string{"create a.npm-1 (not found)", give}},
		"removed while its worker runs": {func(o *Observed) { o.Caches = nil }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := withCache(desired(tc.only...), "1")
			o := running(d)
			o.Volumes = slices.DeleteFunc(o.Volumes, func(v Object) bool { return strings.Contains(v.Name, "cache-") })
			o.Caches = []Object{cacheOf(d)}
			tc.change(&o)
			o.Volumes = slices.DeleteFunc(o.Volumes, func(v Object) bool { return strings.Contains(v.Name, "cache-") })
			p, err := PlanUp(d, o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, cacheSteps(p)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, p)
			}
			checkOrder(t, p)
			for _, s := range p.Steps { // what is removed is so after the worker is ready
				if s.Op == OpRemoveVolume && s.Key == cacheKey && (len(s.After) != 1 || p.Steps[s.After[0]-1].Op != OpWaitReady) {
					t.Errorf("%v", s)
				}
			}
		})
	}
}

// down keeps caches, and with --volumes it removes those of its directory.
func TestPlanDownAndCaches(t *testing.T) {
	d := withCache(desired(), "1")
	o := running(d)
	o.Volumes = slices.DeleteFunc(o.Volumes, func(v Object) bool { return strings.Contains(v.Name, "cache-") })
	other := cacheOf(withCache(desired(), "2"))
	other.Labels[compose.LabelDirectory] = "/work/other"
	o.Caches = []Object{cacheOf(d), other}
	p, err := PlanDown(o, "/work/p")
	if err != nil || len(cacheSteps(p)) > 0 {
		t.Errorf("%v\n%s", err, p)
	}
	p, err = PlanDownWithCaches(o, "/work/p")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"remove a.npm-1 (down)"}, cacheSteps(p)); diff != "" {
		t.Errorf("%s\n%s", diff, p)
	}
	checkOrder(t, p)
	if last := p.Steps[len(p.Steps)-1]; len(last.After) != len(o.Containers) {
		t.Errorf("it is removed before its containers: %v", last)
	}
}

// A failed up leaves the caches.
func TestRollBackKeepsCaches(t *testing.T) {
	d := withCache(desired(), "1")
	now := Observed{Project: "p", Caches: []Object{cacheOf(d)}}
	if p := PlanRollBack(d.Compiled, Observed{Project: "p"}, now); len(p.Steps) > 0 {
		t.Errorf("%s", p)
	}
}

func TestSiftCaches(t *testing.T) {
	d := withCache(desired(), "1")
	halfOurs := Object{Name: "p_cache-a.npm-1", Labels: map[string]string{compose.LabelCache: "a/npm"}}
	o := Observed{Project: "p", Volumes: []Object{cacheOf(d), halfOurs}}
	o.Sift()
	if len(o.Caches) != 1 || len(o.Volumes) != 0 || len(o.Others) != 1 {
		t.Errorf("%+v", o)
	}
	if c, ok := CacheOf(o.Caches[0]); !ok || c.Worker != "a" || c.Cache != "npm" || c.Project != "p" || c.Directory != "/work/p" {
		t.Errorf("%+v, %t", c, ok)
	}
}

// An engine without containers has no caches, nor the variables that lead to them.
func TestWorkersOnlyWithoutCaches(t *testing.T) {
	d := withCache(desired(), "1")
	p, err := PlanUp(d, Observed{Project: "p", WorkersOnly: true, Images: running(d).Images})
	if err != nil {
		t.Fatal(err)
	}
	s := p.Compiled.Project.Services["a"]
	if _, has := s.Environment["npm_config_cache"]; has || s.Environment["LANG"] == nil || uses(s, cacheKey) || len(cacheSteps(p)) > 0 {
		t.Errorf("%v, %v\n%s", s.Environment, s.Volumes, p)
	}
	if s := d.Compiled.Project.Services["a"]; s.Environment["npm_config_cache"] == nil || !uses(s, cacheKey) {
		t.Error("the project itself was changed")
	}
}
