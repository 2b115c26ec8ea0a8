package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/workshop"
)

// A file of the state that isn't what was written there is an error that says
// what to do, and that helps, whether something runs or not.
func TestRealDamagedState(t *testing.T) {
	damages := map[string]func(name string, was []byte) error{
		"empty":         func(name string, _ []byte) error { return os.WriteFile(name, nil, 0o600) },
		"torn":          func(name string, was []byte) error { return os.WriteFile(name, was[:len(was)/2], 0o600) },
		"a directory":   func(name string, _ []byte) error { return errors.Join(os.Remove(name), os.Mkdir(name, 0o700)) },
		"other version": func(name string, was []byte) error { return os.WriteFile(name, another(was), 0o600) },
	}
	f := newFixture(t, func(w *workshop.Workshop) {
		w.Workers[0].Container.Network = workshop.Network{Mode: value(firewall.None)}
	}, "w")
	f.directory(t, "input", "a.txt", ".env") // a volume
	f.compile(t, func(w *workshop.Workshop) {
		w.Workers[0].Container.Network = workshop.Network{Mode: value(firewall.None)}
		mount("./input", "/input", func(m *workshop.Mount) { m.Exclude = []string{".env"} })(w)
	}, "w")
	observe := func() error { _, err := f.e.Observe(t.Context(), f.name); return err }
	for _, file := range []string{"state.json", "objects.json"} {
		for what, damage := range damages {
			for _, lives := range []bool{true, false} {
				name := what + " " + file
				if lives {
					name += " beside a supervisor"
				}
				t.Run(name, func(t *testing.T) {
					f.up(t)
					if !lives {
						f.kill(t)
					}
					path := filepath.Join(f.e.dir(f.name), file)
					was, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					spoil := func() { // a supervisor may be about to write it
						for i := 0; damage(path, was) != nil; i++ {
							if i == 10 {
								t.Fatal("it can't be damaged")
							}
						}
					}
					spoil()
					err = observe()
					if lives && file == "state.json" { // the supervisor tells; but not whether it takes our specs
						if err != nil {
							t.Error(err)
						}
						// It may have had something to write down, and then repaired it.
						for range 10 {
							if _, err = f.e.supervisor(t.Context(), f.name); err != nil {
								break
							}
							time.Sleep(20 * time.Millisecond)
							spoil()
						}
						if refused := (*engine.RefusedError)(nil); what == "other version" && errors.As(err, &refused) {
							err = nil // in its own words
						} else if err == nil {
							t.Error("it is used")
						}
					} else if what == "other version" && file == "state.json" { // another version's, and nothing of it runs
						if err != nil {
							t.Error(err)
						}
					} else if err == nil {
						t.Error("it is taken for what it was")
					} else {
						t.Log(err)
					}
					if err != nil && (!strings.Contains(err.Error(), path+" can't be read (") || !strings.Contains(err.Error(), "remove it and run `workshop down`")) {
						t.Error(err)
					}
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
					f.down(t)
					if n := len(f.supervisors(t)); n != 0 {
						t.Errorf("%d supervisors are left", n)
					}
				})
			}
		}
	}
}

// another is a state file as another version may write it.
func another(was []byte) []byte {
	text := strings.Replace(string(was), fmt.Sprintf(`"version":%d`, spec.Version), `"version":99`, 1)
	return []byte(strings.Replace(text, `"volumes":`, `"things":`, 1))
}

// kill ends the supervisors as kill -9 does, and waits.
func (f *fixture) kill(t testing.TB) {
	t.Helper()
	for _, pid := range f.supervisors(t) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(10 * time.Second); len(f.supervisors(t)) > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}
