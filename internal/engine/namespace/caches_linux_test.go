package namespace

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// Caches stay after down, are listed with their sizes, and go one by one when nothing
// has them.
func TestRealCaches(t *testing.T) {
	f := newFixture(t, nil)
	f.compile(t, func(w *workshop.Workshop) {
		for i := range w.Workers {
			w.Workers[i].Container.Caches = []workshop.Cache{{Name: "npm", Target: value("/caches/npm"), PruneAbove: value(workshop.Size(1 << 30))}}
		}
	}, "one", "two")
	f.up(t)
	if out, code := f.run(t, "one", "dd if=/dev/zero of=/caches/npm/x bs=1M count=2 2>/dev/null; stat -c %a:%u /caches/npm; echo $npm_config_cache"); code != 0 || out != "700:"+strconv.Itoa(user())+"\n/caches/npm\n" {
		t.Errorf("%d: %q", code, out)
	}
	if again := f.plan(t); !again.Empty() {
		t.Errorf("the next up does something:\n%s", again)
	}
	list := func(sizes bool) []engine.Cache {
		t.Helper()
		all, err := f.another(t).Caches(t.Context(), sizes)
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all
	}
	one := list(true)[0]
	if one.Worker != "one" || one.Cache != "npm" || one.Project != f.name || one.Directory != f.dir || !one.InUse || one.Size < 2<<20 || one.Size > 3<<20 || one.Created.IsZero() {
		t.Errorf("%+v", one)
	}
	if one := list(false)[0]; one.Size != -1 {
		t.Errorf("%+v", one)
	}
	if err := f.e.RemoveCache(t.Context(), one); !engine.IsConflict(err) {
		t.Errorf("a cache in use is removed: %v", err)
	}
	f.down(t)
	if one = list(false)[0]; one.InUse {
		t.Errorf("%+v", one)
	}
	if list, err := os.ReadDir(f.o.StateDir); len(list) > 0 {
		t.Errorf("after down the state has %v, %v", list, err)
	}
	// Neither a name that leads out nor what isn't a cache is removed.
	outside := filepath.Join(f.o.CacheDir, "init")
	for _, c := range []engine.Cache{{Project: "..", Name: "init"}, {Project: f.name, Name: "../../init"}, {Project: f.name, Name: ""}} {
		if err := f.e.RemoveCache(t.Context(), c); err == nil {
			t.Errorf("%+v is removed", c)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	for _, c := range list(false) {
		if err := f.e.RemoveCache(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	if all, err := f.e.Caches(t.Context(), true); len(all) > 0 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := os.Stat(f.e.cachesDir(f.name)); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// What a killed run left of a cache is nobody's, and is made anew.
func TestRealHalfACache(t *testing.T) {
	f := newFixture(t, nil)
	change := func(w *workshop.Workshop) {
		w.Workers[0].Container.Caches = []workshop.Cache{{Name: "npm", Target: value("/caches/npm"), PruneAbove: value(workshop.Size(1 << 30))}}
	}
	f.compile(t, change, "one")
	name := f.c.Project.Volumes["cache-one.npm"].Name
	if err := os.MkdirAll(filepath.Join(f.e.cachesDir(f.name), name, cacheData, "planted"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.up(t)
	if out, code := f.run(t, "one", "ls -A /caches/npm; touch /caches/npm/x"); code != 0 || out != "" {
		t.Errorf("%d: %q", code, out)
	}
	// One that somebody deleted is made again, also for a stopped worker.
	f.down(t)
	if err := os.RemoveAll(filepath.Join(f.o.CacheDir, "caches")); err != nil {
		t.Fatal(err)
	}
	f.up(t)
	if out, code := f.run(t, "one", "ls -A /caches/npm; touch /caches/npm/x"); code != 0 || out != "" {
		t.Errorf("%d: %q", code, out)
	}
}
