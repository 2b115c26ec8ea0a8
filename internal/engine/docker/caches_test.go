package docker

import (
	"context"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/volume"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// Caches stay after down, are listed, and go one by one when nothing has them.
func TestCaches(t *testing.T) {
	f := newFixture(t, func(w *workshop.Workshop) {
		w.Workers[0].Container.Caches = []workshop.Cache{{Name: "npm", Target: value("/caches/npm"), PruneAbove: value(workshop.Size(1 << 30))}}
	}, "one", "two")
	mine := func(sizes bool) []engine.Cache {
		t.Helper()
		all, err := f.e.Caches(context.WithoutCancel(t.Context()), sizes)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(c engine.Cache) bool { return c.Project != f.name })
	}
	t.Cleanup(func() {
		f.down(t)
		for _, c := range mine(false) {
			_ = f.e.RemoveCache(context.Background(), c)
		}
	})
	f.up(t)
	if again := f.plan(t); !again.Empty() {
		t.Errorf("the next up does something:\n%s", again)
	}
	all := mine(true)
	if len(all) != 1 || all[0].Worker != "one" || all[0].Cache != "npm" || all[0].Directory != f.dir || !all[0].InUse || all[0].Size < 0 || all[0].Created.IsZero() {
		t.Fatalf("%+v", all)
	}
	if err := f.e.RemoveCache(t.Context(), all[0]); !engine.IsConflict(err) {
		t.Errorf("a cache in use is removed: %v", err)
	}
	f.down(t)
	if left := f.leftovers(t); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if all = mine(false); len(all) != 1 || all[0].InUse || all[0].Size != -1 {
		t.Fatalf("%+v", all)
	}
	// A volume that isn't a cache is never removed as one.
	other := f.name + "_pgdata"
	if _, err := f.e.cli.VolumeCreate(t.Context(), volume.CreateOptions{Name: other, Labels: map[string]string{engine.LabelProject: f.name, compose.LabelCache: "one/npm"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.e.cli.VolumeRemove(context.Background(), other, true) })
	if err := f.e.RemoveCache(t.Context(), engine.Cache{Project: f.name, Name: other}); err == nil {
		t.Error("a volume without our directory is removed")
	}
	if len(mine(false)) != 1 {
		t.Errorf("%+v", mine(false))
	}
	if err := f.e.RemoveCache(t.Context(), all[0]); err != nil {
		t.Error(err)
	}
	if all = mine(false); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}
