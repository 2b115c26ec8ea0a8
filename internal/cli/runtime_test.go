package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// TestRuntimesOfTheUser: the user's settings alone allow a runtime (B6).
func TestRuntimesOfTheUser(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "workshop"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "workshop/config.yaml"), []byte("runtimes: [runsc, kata]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"XDG_CONFIG_HOME": dir}
	a := &program{System: &System{Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}}
	var err error
	if a.set, err = a.readSettings(&cobra.Command{}); err != nil {
		t.Fatal(err)
	}
	o := a.factsOptions(&compiled{source: &source{w: &workshop.Workshop{}}, compiled: &compose.Compiled{}}, engine.Info{DefaultRuntime: "nvidia"})
	if want := []string{"runsc", "kata"}; !slices.Equal(o.UserRuntimes, want) || o.DefaultRuntime != "nvidia" {
		t.Errorf("got %v and %q, want %v and nvidia", o.UserRuntimes, o.DefaultRuntime, want)
	}
	env["WORKSHOP_RUNTIMES"] = "nvidia"
	if _, err := a.readSettings(&cobra.Command{}); err == nil {
		t.Error("WORKSHOP_RUNTIMES was taken")
	}
}

// TestRuntimeIsSaid: a worker's line of `up` has its runtime.
func TestRuntimeIsSaid(t *testing.T) {
	w := &workshop.Worker{Name: "w"}
	w.Container.Runtime.V = "runsc"
	if line := workerLine(w, false); !strings.Contains(line, "; runtime runsc; ") {
		t.Error(line)
	}
}
