package facts

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/llmdo/workshop/workshop/worker"
)

// TestOwnFiles: B8, B40: what the workshop is read from is compared where workers
// may write it, by whatever name.
func TestOwnFiles(t *testing.T) {
	dir, o := project(t, "    mounts: [{source: ., target: /p, mode: rw}]\n")
	write(t, dir, "schemas/r.json", "{}")
	write(t, dir, "schemas/other.json", "{}")
	if err := chownAll(dir); err != nil {
		t.Fatal(err)
	}
	o.Workshop.Workers[0].Definition.ResultFile = worker.Reference{Name: "../schemas/r.json"}
	c, list := judge(t, o)
	if len(list) > 0 {
		t.Fatal(list)
	}
	before, err := TakeSnapshot(t.Context(), c, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{}
	for _, name := range []string{"schemas/r.json", "workers/one.md", "workshop.yaml"} {
		write(t, dir, name, "a worker's")
		want = append(want, Change{Path: filepath.Join(dir, name), Kind: Changed})
	}
	write(t, dir, "schemas/other.json", "a worker's")
	after, err := TakeSnapshot(t.Context(), c, dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := before.Compare(after); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestLoopbackAddrs: an engine without root has a network in user space, by which the
// machine's loopback may be reached.
func TestLoopbackAddrs(t *testing.T) {
	for _, rootless := range []bool{false, true} {
		_, o := project(t, "")
		o.Rootless = rootless
		f, _, list := Collect(t.Context(), o)
		if len(list) > 0 || slices.Equal(f.LoopbackAddrs, userNetwork) != rootless || len(f.LoopbackAddrs) > 0 != rootless {
			t.Errorf("rootless %v: %v, %v", rootless, f.LoopbackAddrs, list)
		}
	}
}
