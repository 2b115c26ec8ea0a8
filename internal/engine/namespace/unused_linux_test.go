package namespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// version is an engine of another version with the same directories.
func version(t *testing.T, e *Engine, program string) *Engine {
	other := engineOf(t, program)
	other.opts.StateDir, other.opts.CacheDir = e.opts.StateDir, e.opts.CacheDir
	return other
}

// A new version takes away what nobody has used for a month, and nothing that a
// container may need.
func TestUnusedPrograms(t *testing.T) {
	e := engineOf(t, "the new one")
	init := filepath.Join(e.opts.CacheDir, "init")
	age := func(name string, days int) {
		t.Helper()
		then := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
		if err := os.Chtimes(filepath.Join(init, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	dirs := map[string]string{}
	days := map[string]int{"recent": 29, "unused": 31, "running": 400, "mounted": 400}
	for name := range days {
		dir, err := version(t, e, name).program()
		if err != nil {
			t.Fatal(err)
		}
		dirs[name] = filepath.Base(dir)
	}
	for name, days := range days {
		age(dirs[name], days)
		age(dirs[name]+".json", 500)
	}
	for name, days := range map[string]int{".new-1": 31, ".new-2": 0} {
		if err := os.WriteFile(filepath.Join(init, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		age(name, days)
	}
	keep := func(project string, sources ...string) {
		t.Helper()
		f := api.File{Version: spec.Version, Containers: []api.Seen{{State: api.Exited}}}
		for _, s := range sources {
			f.Containers[0].Container.Mounts = append(f.Containers[0].Container.Mounts, spec.Mount{Source: s})
		}
		b, err := json.Marshal(f)
		if err = errors.Join(err, os.MkdirAll(e.dir(project), 0o700), os.WriteFile(filepath.Join(e.dir(project), api.StateName), b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	keep("one", "/", filepath.Join(init, dirs["running"], programName))
	keep("two", "/elsewhere", filepath.Join(init, dirs["mounted"]))
	own, _, err := e.programDir()
	if err != nil {
		t.Fatal(err)
	}
	expect := func(names ...string) {
		t.Helper()
		want := []string{filepath.Base(own), filepath.Base(own) + ".json", ".new-2"}
		for _, n := range names {
			want = append(want, strings.Replace(n, strings.TrimSuffix(n, ".json"), dirs[strings.TrimSuffix(n, ".json")], 1))
		}
		var got []string
		list, _ := os.ReadDir(init)
		for _, d := range list {
			got = append(got, d.Name())
		}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("there is %v, want %v", got, want)
		}
	}
	// What runs can't be told: nothing goes.
	if err := errors.Join(os.Mkdir(e.dir("torn"), 0o700), os.WriteFile(filepath.Join(e.dir("torn"), api.StateName), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.program(); err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(init); len(list) != 12 {
		t.Errorf("beside a state that can't be read: %v", list)
	}
	if err := errors.Join(os.RemoveAll(e.dir("torn")), os.RemoveAll(own), os.Remove(own+".json")); err != nil {
		t.Fatal(err)
	}
	if _, err := e.program(); err != nil {
		t.Fatal(err)
	}
	expect("recent", "recent.json", "running", "running.json", "mounted", "mounted.json")
	// An up that finds its program is a use of it.
	age(dirs["recent"], 31)
	if _, err := version(t, e, "recent").program(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(own); err != nil {
		t.Fatal(err)
	}
	if _, err := e.program(); err != nil {
		t.Fatal(err)
	}
	expect("recent", "recent.json", "running", "running.json", "mounted", "mounted.json")
}

// Beside an up of a version that is old, it is whole when that has it.
func TestUnusedProgramsBesideAnUp(t *testing.T) {
	e := engineOf(t, "the new one")
	old := version(t, e, "the old one")
	own, _, err := e.programDir()
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		dir, err := old.program()
		for i := range 300 { // its removal takes a while
			err = errors.Join(err, os.WriteFile(fmt.Sprint(dir, "/", i), nil, 0o600))
		}
		then := time.Now().Add(-2 * unusedTime)
		if err = errors.Join(err, os.RemoveAll(own), os.Chtimes(dir, then, then), os.Chtimes(dir+".json", then, then)); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := e.program(); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			for !e.hasProgram() { // then it cleans up
				time.Sleep(50 * time.Microsecond)
			}
			if dir, err := old.program(); err != nil || !old.hasProgram() {
				t.Errorf("%s: %v", dir, err)
			}
		})
		both.Wait()
		if !e.hasProgram() || !old.hasProgram() {
			t.Fatal("one of them is gone")
		}
	}
}
