package app

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// withSettings are what a user's config.yaml says; the error is that of reading it. The map is
// the environment.
func withSettings(t *testing.T, text string) (*Env, map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	err := os.Mkdir(filepath.Join(dir, "workshop"), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "workshop/config.yaml"), []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"XDG_CONFIG_HOME": dir}
	a := testEnv(&Env{Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, io.Discard)
	values, from, err := a.UserValues()
	if err == nil {
		err = a.Set(values, from)
	}
	return a, env, err
}

// TestRuntimesOfTheUser: the user's settings alone allow a runtime (B6).
func TestRuntimesOfTheUser(t *testing.T) {
	a, env, err := withSettings(t, "runtimes: [runsc, kata]\n")
	if err != nil {
		t.Fatal(err)
	}
	o := a.factsOptions(t.Context(), &Project{Source: &Source{Workshop: &workshop.Workshop{}}, Compiled: &compose.Compiled{}}, engine.Info{DefaultRuntime: "nvidia"})
	if want := []string{"runsc", "kata"}; !slices.Equal(o.UserRuntimes, want) || o.DefaultRuntime != "nvidia" {
		t.Errorf("got %v and %q, want %v and nvidia", o.UserRuntimes, o.DefaultRuntime, want)
	}
	env["WORKSHOP_RUNTIMES"] = "nvidia"
	if _, _, err := a.UserValues(); err == nil {
		t.Error("WORKSHOP_RUNTIMES was taken")
	}
}

// TestPodmanOfTheUser: the user's settings alone accept what podman doesn't hold (B6).
func TestPodmanOfTheUser(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		want       bool
		err        string
	}{
		{"accepted", "podman: {cgroup_v1: true}\n", true, ""},
		{"not accepted", "podman: {cgroup_v1: false}\n", false, ""},
		{"nothing said", "quiet: true\n", false, ""},
		{"empty", "podman:\n", false, ""},
		{"unknown", "podman: {cgroup_v1: true, machine: true}\n", false, "is not `cgroup_v1: true`"},
		{"text", "podman: yes\n", false, "is not `cgroup_v1: true`"},
		{"text inside", "podman: {cgroup_v1: yes please}\n", false, "is not `cgroup_v1: true`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, env, err := withSettings(t, tt.file)
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got %v, want %q", err, tt.err)
			case err == nil && a.Settings.Podman.CgroupV1 != tt.want:
				t.Errorf("got %v, want %v", a.Settings.Podman.CgroupV1, tt.want)
			}
			env["WORKSHOP_PODMAN"] = "cgroup_v1"
			if _, _, err := a.UserValues(); err == nil {
				t.Error("WORKSHOP_PODMAN was taken")
			}
		})
	}
}

// TestSettingsNest: what is below a key, whatever its own keys are, is refused:
// no setting is without effect in silence.
func TestSettingsNest(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "workshop"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"engine: {x: docker}\n", "engine: {1: docker}\n", "approvals_max: {true: deny}\n"} {
		if err := os.WriteFile(filepath.Join(dir, "workshop/config.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		env := &Env{Lookup: func(name string) (string, bool) { return dir, name == "XDG_CONFIG_HOME" }}
		if values, _, err := env.UserValues(); err == nil || !strings.Contains(err.Error(), "unknown key") {
			t.Errorf("%q: got %v, %v, want an unknown key", text, values, err)
		}
	}
}
