package app

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
)

// TestManyKeys: B60: a look at the name takes time in proportion to the file.
func TestManyKeys(t *testing.T) {
	var text strings.Builder
	text.WriteString("workshop:\n  name: hostile\n")
	for i := range 70_000 {
		fmt.Fprintf(&text, "  k%d: x\n", i)
	}
	file := filepath.Join(t.TempDir(), "workshop.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := testutil.Now()
	if name, _ := quickLook(file); name != "hostile" {
		t.Errorf("got the name %q", name)
	}
	if d := testutil.Since(begin); d > 2*time.Second {
		t.Errorf("took %v", d)
	}
}

// A name that isn't up has the hint that helps: the names of its kind, or that the file
// has it.
func TestServices(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, fstest.MapFS{
		"workshop.yaml":     {Data: []byte("workshop:\n  name: x\n  container: {image: host}\n  workers: [dev, looker]\n")},
		"workers/dev.md":    {Data: []byte("---\nname: dev\ntools: Bash\n---\nx\n")},
		"workers/looker.md": {Data: []byte("---\nname: looker\ntools: Bash\n---\nx\n")},
	}); err != nil {
		t.Fatal(err)
	}
	env := testEnv(&Env{Dir: dir, Lookup: func(string) (string, bool) { return "", false }}, io.Discard)
	seen := engine.Observed{Containers: []engine.Container{{Service: "dev", Role: "worker"}, {Service: "guard", Role: "guard"}, {Service: "room", Role: "room"}}}
	for _, c := range []struct {
		name, worker, want string
		roles              []compose.Role
	}{
		{"there", "dev", "", nil},
		{"not there", "nobody", "known: dev", []compose.Role{compose.RoleWorker}},
		{"not there, of any kind", "nobody", "known: dev, guard, room", nil},
		{"in the file", "looker", "it is in workshop.yaml, but not up: `workshop up`", []compose.Role{compose.RoleWorker}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := env.services(t.Context(), ProjectRef{Name: "x", Dir: dir, File: filepath.Join(dir, "workshop.yaml")}, seen, []string{c.worker}, c.roles...)
			if got := strings.Join(Hints(err), "\n"); got != c.want || (err == nil) != (c.want == "") {
				t.Errorf("%v, hint %q, want %q", err, got, c.want)
			}
		})
	}
}
