package docker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A build sends the engine the credentials of registries that it needs, and no others.
func TestBuildCredentials(t *testing.T) {
	dir := t.TempDir()
	const config = `{"auths": {
		"https://index.docker.io/v1/": {"auth": "aHViOng="}, "ghcr.example": {"auth": "Z2hjcjp4"},
		"https://old.example/v2/": {"auth": "b2xkOng="}, "registry.example:5000": {"auth": "cmVnOng="}, "": {"auth": "bm9uZTp4"}
	}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &Engine{opts: Options{Lookup: env(map[string]string{"DOCKER_CONFIG": dir})}}
	for _, tc := range []struct {
		name, dockerfile, arg, want string
	}{
		{"an image of Docker Hub", "FROM debian", "", "https://index.docker.io/v1/"},
		{"a registry", "FROM ghcr.example/a/b\nRUN x", "", "ghcr.example https://index.docker.io/v1/"},
		{"one with a port", "FROM debian\nCOPY --from=registry.example:5000/a /b /c", "", "https://index.docker.io/v1/ registry.example:5000"},
		{"one that was stored with its URL", "FROM old.example/a", "", "https://index.docker.io/v1/ https://old.example/v2/"},
		{"one of an argument", "ARG BASE\nFROM $BASE", "ghcr.example/a", "ghcr.example https://index.docker.io/v1/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := e.buildCredentials([]byte(tc.dockerfile), map[string]string{"BASE": tc.arg})
			if got := strings.Join(sortedKeys(all), " "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
