package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The command to paste is of the Compose that is there.
func TestComposeProgram(t *testing.T) {
	both := pluginDirs
	pluginDirs = nil
	t.Cleanup(func() { pluginDirs = both })
	file := func(name string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := t.TempDir()
	alone := filepath.Dir(file("docker-compose"))
	config := filepath.Dir(filepath.Dir(file("cli-plugins/docker-compose")))
	home := filepath.Dir(filepath.Dir(filepath.Dir(file(".docker/cli-plugins/docker-compose"))))
	for _, c := range []struct{ path, config, home, want string }{
		{empty, "", empty, "docker compose"},
		{empty + ":" + alone, "", empty, "docker-compose"},
		{alone, config, empty, "docker compose"},
		{alone, "", home, "docker compose"},
	} {
		a := &app{System: &System{Home: c.home, Lookup: func(name string) (string, bool) {
			v := map[string]string{"PATH": c.path, "DOCKER_CONFIG": c.config}[name]
			return v, v != ""
		}}}
		if got := strings.Join(a.composeProgram(), " "); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
