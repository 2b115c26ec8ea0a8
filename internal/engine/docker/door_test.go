package docker

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
)

// B60: nothing is made or removed in a directory that only the engine calls a worker's
// dial-in directory.
func TestDoorIsOurs(t *testing.T) {
	dir := t.TempDir()
	make := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(path), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ours := make("p-01234567/door-w", 0o700)
	linked := filepath.Join(dir, "p-1")
	if err := os.Symlink(filepath.Dir(ours), linked); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir  string
		want bool
	}{
		"ours":             {ours, true},
		"another worker's": {make("p-01234567/door-x", 0o700), false},
		"another project":  {make("q-01234567/door-w", 0o700), false},
		"open to others":   {make("p-12345678/door-w", 0o755), false},
		"through a link":   {filepath.Join(linked, "door-w"), false},
		"not clean":        {ours + "/../door-w", false},
		"any":              {make("home/work", 0o700), false},
		"relative":         {"p-01234567/door-w", false},
		"no directory":     {filepath.Join(dir, "p-9/door-w"), false},
	} {
		if got := isDoor(tc.dir, "p", "w"); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// B60: an engine that names a directory of the machine as the door of a worker, and doesn't
// remove it, makes `down` end no worker: a file "end" there stays, and old sockets.
func TestEngineNamesADoor(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"end", "old.sock"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	engine := honest()
	list := engine["/containers/json"].([]any)[0].(map[string]any)
	list["Mounts"] = []any{map[string]any{"Type": "bind", "Source": dir, "Destination": compose.DialInDir}}
	engine["/containers/json"] = []any{list}
	e := engineOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/stop") {
			time.Sleep(500 * time.Millisecond)
		}
		engine.ServeHTTP(w, r)
	}))
	done := e.endByDialIn(t.Context(), hostileID, "p", "w", time.Millisecond)
	_ = e.cli.ContainerStop(t.Context(), hostileID, container.StopOptions{})
	done()
	for _, name := range []string{"end", "old.sock"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != "mine" {
			t.Errorf("%s: got %q, %v", name, b, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v; want two files", entries, err)
	}
}

// An engine that ignores filters, and lists what belongs to another project, makes no
// command look at that, or remove it.
func TestFiltersAreOurs(t *testing.T) {
	e := engineOf(t, http.HandlerFunc(honest().ServeHTTP))
	o, err := e.Observe(t.Context(), "q")
	if err != nil || len(o.Containers)+len(o.Networks)+len(o.Volumes)+len(o.Others) != 0 {
		t.Errorf("got %+v, %v; want nothing", o, err)
	}
	if o, err = e.Observe(t.Context(), "p"); err != nil || len(o.Containers) != 2 || len(o.Networks) != 1 || len(o.Volumes) != 1 {
		t.Errorf("control: got %+v, %v", o, err)
	}
	for _, name := range [][2]string{{"q", "w"}, {"p", "x"}} {
		if c, err := e.one(t.Context(), name[0], name[1]); !isNotRunning(err) {
			t.Errorf("%v: got %+v, %v", name, c, err)
		}
	}
}
