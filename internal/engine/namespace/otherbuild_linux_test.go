package namespace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// otherBuild is the engine of another build, whose workshop-init has more bytes.
func (f *fixture) otherBuild(t *testing.T) *fixture {
	t.Helper()
	set, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	data, err := set.Binary(arch)
	if err != nil {
		t.Fatal(err)
	}
	other := *f
	other.o.Init = testutil.InitSet(append(bytes.Clone(data), "another build"...))
	other.e = other.another(t)
	return &other
}

func (f *fixture) build(t *testing.T) string {
	t.Helper()
	c, err := f.e.find(t.Context(), f.name)
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	h, err := c.Hello(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h.Version
}

// What one build brought up another one reads and uses, and its up replaces all of it,
// the supervisor too.
func TestRealOtherBuild(t *testing.T) {
	f := newFixture(t, nil, "w")
	f.up(t)
	was := f.build(t)
	other := f.otherBuild(t)
	other.compile(t, nil, "w")
	if o := other.observe(t); !o.Outdated || len(o.Containers) != 3 {
		t.Errorf("outdated %v, %d containers", o.Outdated, len(o.Containers))
	}
	if out, code := other.run(t, "w", "echo here"); code != 0 || out != "here\n" {
		t.Errorf("%d %q", code, out)
	}
	if f.observe(t).Outdated {
		t.Error("its own build takes it for outdated")
	}
	other.up(t)
	if now := other.build(t); now == was {
		t.Error("the old supervisor goes on")
	}
	if o := other.observe(t); o.Outdated || !other.plan(t).Empty() {
		t.Errorf("it is still outdated, or the next up does something: %s", other.plan(t))
	}
	if n := len(other.supervisors(t)); n != 1 {
		t.Errorf("%d supervisors", n)
	}
	other.down(t)
}

// After a crash or a reboot, another version may have written the state: nothing of it
// runs, and up begins anew.
func TestRealOtherFormAfterAReboot(t *testing.T) {
	f := newFixture(t, nil, "w")
	for _, change := range []func([]byte) []byte{
		func(b []byte) []byte { return b },
		func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"uid":`), []byte(`"uid":["new form"],"was_uid":`))
		},
	} {
		f.up(t)
		f.kill(t)
		name := filepath.Join(f.e.dir(f.name), api.StateName)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, change(another(b)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range f.observe(t).Containers {
			if c.State == string(api.Running) {
				t.Errorf("%s runs", c.Name)
			}
		}
		f.up(t)
		if out, code := f.run(t, "w", "echo here"); code != 0 || out != "here\n" {
			t.Errorf("%d %q", code, out)
		}
	}
}
