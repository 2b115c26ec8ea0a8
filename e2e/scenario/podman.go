//go:build linux

package scenario

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/go-units"

	"github.com/llmdo/workshop/e2e/ownengine"
)

// EndPodman ends podman's service; containers go on. [Scenario.StartPodman] must follow.
func (s *Scenario) EndPodman(signal syscall.Signal) {
	s.Helper()
	s.must(s.machine.(*dockerMachine).podman.Stop(signal))
}

// StartPodman starts the service again.
func (s *Scenario) StartPodman() { s.Helper(); s.must(s.machine.(*dockerMachine).podman.Start()) }

// PodmanStorage is the directory of its images, containers and volumes.
func (s *Scenario) PodmanStorage() string { return s.machine.(*dockerMachine).podman.At("data") }

// StoreAlone leaves a container of this name that podman's storage has and its database
// doesn't know, as a podman that ends while it creates one does; with builds: one of
// buildah's. It returns what says whether it is there, and what removes it.
func (s *Scenario) StoreAlone(name string, builds bool) (there func() bool, remove func()) {
	s.Helper()
	m := s.machine.(*dockerMachine)
	database := m.podman.At("data/libpod/bolt_state.db")
	s.EndPodman(syscall.SIGTERM)
	before, err := os.ReadFile(database)
	s.must(err)
	s.StartPodman()
	images, err := m.client.ImageList(s.Context(), image.ListOptions{})
	if err != nil || len(images) == 0 {
		s.Fatalf("podman has the images %v: %v", images, err)
	}
	made, err := m.client.ContainerCreate(s.Context(), &container.Config{Image: images[0].ID, Cmd: []string{"/x"}}, nil, nil, nil, name)
	s.must(err)
	dirs, err := filepath.Glob(m.podman.At("data/*-containers/" + made.ID + "/userdata"))
	if err != nil || len(dirs) != 1 {
		s.Fatalf("its directories are %v: %v", dirs, err)
	}
	s.EndPodman(syscall.SIGTERM)
	s.must(os.WriteFile(database, before, 0o600))
	if builds { // buildah: buildah.go, stateFile
		s.must(os.WriteFile(filepath.Join(dirs[0], "buildah.json"), []byte("{}"), 0o600))
	}
	s.StartPodman()
	there = func() bool { _, err := os.Stat(dirs[0]); return err == nil }
	remove = func() { _ = exec.Command("podman", append(m.podman.Places(), "rm", "-f", made.ID)...).Run() }
	s.Cleanup(remove)
	return there, remove
}

// podmanLogSize is the bound of a container's log, which podman's own API shows alone.
func podmanLogSize(p *ownengine.Podman, id string) (int64, error) {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(p.Host, "unix://"))
	}}}
	resp, err := c.Get("http://podman/v4.0.0/libpod/containers/" + id + "/json")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var out struct {
		HostConfig struct {
			LogConfig struct{ Size string }
		}
	}
	if resp.StatusCode == http.StatusNotFound { // removed since it was listed
		return 0, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return 0, err
	}
	if out.HostConfig.LogConfig.Size == "" { // it is being created
		return 0, nil
	}
	return units.RAMInBytes(out.HostConfig.LogConfig.Size)
}

// settingsOf is the file of the settings that the programs of a scenario read; "" where it
// gives them none.
func settingsOf(home string, env []string) string {
	config := ""
	for _, e := range append([]string{"HOME=" + home}, env...) {
		name, value, _ := strings.Cut(e, "=")
		switch name {
		case "HOME":
			home = value
		case "XDG_CONFIG_HOME":
			config = value
		}
	}
	switch config {
	case "/nonexistent":
		return ""
	case "":
		config = filepath.Join(home, ".config")
	}
	return filepath.Join(config, "workshop", "config.yaml")
}
