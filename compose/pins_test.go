package compose

import (
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/workshop"
)

// nested is a workshop in which one worker may write around what others mount.
func nested(t *testing.T, mounts ...workshop.Mount) *Compiled {
	t.Helper()
	w := sample(t, 2)
	w.Workers[0].Container.Mounts = []workshop.Mount{{Source: val("./output"), Target: val("/out"), ReadWrite: true, At: at(11)}}
	w.Workers[0].Container.Mounts = append(w.Workers[0].Container.Mounts, mounts...)
	w.Workers[1].Container.Mounts = []workshop.Mount{{Source: val("./output/a/data"), Target: val("/data"), At: at(12)}}
	f := sampleFacts()
	for _, p := range []string{"output/a/data", "output/a", "src"} {
		f.Sources["./"+p] = SourceFacts{Exists: true, Dir: true, Real: "/work/project/" + p, UID: 1000, GID: 1000, Mode: 0o755}
	}
	f.Protected = map[string][]Protected{"./output": {{"a/.git", GitDir}}}
	for i := range mounts {
		f.Points = map[string]PointFacts{"/work/project/output" + mounts[i].Target.V[len("/out"):]: {Exists: true}}
	}
	return withFacts(t, compiled(t, w), f)
}

// B7: what another mount takes from below an rw mount can't be replaced by a
// symlink to any place of the host.
func TestSourcesBelowWritableMountsArePinned(t *testing.T) {
	c := nested(t)
	if v := Check(c); len(v) > 0 {
		t.Fatal(v)
	}
	s := c.Project.Services[worker]
	for target, readOnly := range map[string]bool{"/out": false, "/out/a": false, "/out/a/data": false, "/out/a/.git": true} {
		i := slices.IndexFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == target })
		if i < 0 {
			t.Errorf("nothing is mounted at %s", target)
			continue
		}
		if v := s.Volumes[i]; v.ReadOnly != readOnly || v.Source != "/work/project/output"+target[len("/out"):] {
			t.Errorf("%s: %s, read-only %v", target, v.Source, v.ReadOnly)
		}
	}
	for _, target := range []string{"/out/a", "/out/a/data"} {
		broken := nested(t)
		s := broken.Project.Services[worker]
		s.Volumes = slices.DeleteFunc(slices.Clone(s.Volumes), func(v types.ServiceVolumeConfig) bool { return v.Target == target })
		broken.Project.Services[worker] = s
		if v := Check(broken); !slices.ContainsFunc(v, func(v Violation) bool { return v.Promise == "B7" }) {
			t.Errorf("without %s the check says %v", target, v)
		}
	}
}

// A worker's own mount inside an rw mount is a mount point already; nothing is
// mounted twice, and nothing over what it covers.
func TestOwnMountInsideWritableMount(t *testing.T) {
	for name, m := range map[string]workshop.Mount{
		"same":          {Source: val("./output/a"), Target: val("/out/a"), At: at(13)},
		"something":     {Source: val("./src"), Target: val("/out/a"), At: at(13)},
		"same writable": {Source: val("./output/a"), Target: val("/out/a"), ReadWrite: true, At: at(13)},
	} {
		t.Run(name, func(t *testing.T) {
			c := nested(t, m)
			for _, v := range Check(c) {
				t.Error(v)
			}
			s := c.Project.Services[worker]
			if i := slices.IndexFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == "/out/a/data" }); (i >= 0) != (name == "same writable") {
				t.Errorf("pin at /out/a/data: %v", i >= 0)
			}
		})
	}
}

// B7, B12: the way to a mount point inside an rw mount can't be replaced by a link,
// by which what is mounted would come to lie over workshop-init: by the worker
// itself, nor by another that writes there.
func TestMountPointsInWritableMountsArePinned(t *testing.T) {
	w := sample(t, 2)
	out := workshop.Mount{Source: val("./output"), Target: val("/out"), ReadWrite: true, At: at(11)}
	w.Workers[0].Container.Mounts = []workshop.Mount{out, {Source: val("./src"), Target: val("/out/x/workshop"), At: at(12)}}
	w.Workers[1].Container.Mounts = []workshop.Mount{out}
	f := sampleFacts()
	f.Points = map[string]PointFacts{"/work/project/output/x/workshop": {Exists: true}}
	c := withFacts(t, compiled(t, w), f)
	if v := Check(c); len(v) > 0 {
		t.Fatal(v)
	}
	for service, pins := range map[string][]string{"worker-0": {"/out/x"}, "worker-1": {"/out/x", "/out/x/workshop"}} {
		for _, target := range pins {
			s := c.Project.Services[service]
			i := slices.IndexFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == target })
			if i < 0 || s.Volumes[i].Source != "/work/project/output"+target[len("/out"):] || s.Volumes[i].ReadOnly {
				t.Errorf("%s has no pin at %s", service, target)
			}
		}
	}

	for name, found := range map[string]PointFacts{"mount-target-link": {Exists: true, Link: "/work/project/output/x"}, "mount-point-missing": {}} {
		f.Points = map[string]PointFacts{"/work/project/output/x/workshop": found}
		if _, list := WithFacts(compiled(t, w), f); len(list) != 1 || list[0].Code != name || list[0].Range.Start.Line != 12 {
			t.Errorf("want %s, got %v", name, list)
		}
	}
}
