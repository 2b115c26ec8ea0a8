package namespace

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/engine"
)

// What somebody else than `up` starts takes no command until it is compared with what was
// asked for.
func TestRealComparedSinceItsStart(t *testing.T) {
	f := newFixture(t, nil, "w")
	f.up(t)
	c, err := f.e.find(t.Context(), f.name)
	if err != nil {
		t.Fatal(err)
	}
	notCompared := func(want ...string) {
		t.Helper()
		var got []string
		for _, k := range f.observe(t).Containers {
			if k.NotCompared {
				got = append(got, k.Service)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("not compared: %q, want %q", got, want)
		}
	}
	run := func() error {
		_, err := f.e.Exec(t.Context(), f.name, "w", engine.ExecOptions{Command: []string{"true"}})
		return err
	}
	notCompared()
	for _, service := range []string{"w", "guard"} {
		if err := errors.Join(c.Stop(t.Context(), service), c.Start(t.Context(), service)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ready(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		notCompared(service)
		var refused *engine.RefusedError
		if err := run(); service == "w" && !errors.As(err, &refused) || service == "guard" && err != nil {
			t.Errorf("%s was started again: %v", service, err)
		}
		before, err := c.List(t.Context())
		f.up(t)
		after, err2 := c.List(t.Context())
		if d := cmp.Diff(before, after); d != "" || err != nil || err2 != nil {
			t.Errorf("%s isn't as it was (%v, %v):\n%s", service, err, err2, d)
		}
		notCompared()
	}
	if err := run(); err != nil {
		t.Error(err)
	}
	o := f.o
	o.Compared = engine.Compared{Dir: t.TempDir()}
	if other, err := New(t.Context(), o); err != nil {
		t.Error(err)
	} else if _, err := other.Exec(t.Context(), f.name, "w", engine.ExecOptions{Command: []string{"true"}}); err == nil {
		t.Error("what is noted elsewhere counts")
	}
}
