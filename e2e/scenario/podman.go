//go:build linux

package scenario

import (
	"context"
	"encoding/json"
	"errors"
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
	"golang.org/x/sys/unix"
)

// podmanConf is how podman runs here: without systemd, and with a runtime that knows this
// machine's mixture of cgroups.
const podmanConf = `[containers]
default_ulimits = ["nofile=16384:16384", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
[network]
network_backend = "netavark"
default_subnet = "10.216.255.0/24"
default_subnet_pools = [{"base" = "10.216.0.0/17", "size" = 24}]
`

// podmanSettings are the user's: with cgroups of version 1 they have to accept a part of B6.
const podmanSettings = "podman: {cgroup_v1: true}\n"

// podman is a `podman system service` of this run, as root.
type podman struct{ service }

// newPodman starts one in the namespaces of this process, and makes it the engine of
// everything that the run does.
func newPodman() (*podman, error) {
	dir, err := os.MkdirTemp("/tmp", "workshop-e2e-podman.")
	if err != nil {
		return nil, err
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	host := "unix://" + at("podman.sock")
	if err := errors.Join(os.MkdirAll("/run/netns", 0o755), unix.Mount("tmpfs", "/run/netns", "tmpfs", 0, "mode=755"), unix.Mount("", "/run/netns", "", unix.MS_SHARED, ""),
		os.WriteFile(at("containers.conf"), []byte(podmanConf), 0o600), os.Setenv("DOCKER_HOST", host)); err != nil {
		return nil, err
	}
	p := &podman{service{dir: dir, host: host, env: append(os.Environ(), "CONTAINERS_CONF="+at("containers.conf"))}}
	p.argv = append(append([]string{"podman"}, p.places()...), "--log-level", "warn", "system", "service", "--time=0", host)
	return p, p.start()
}

// places are the options that say where it keeps things.
func (p *podman) places() []string {
	return []string{"--root", p.at("data"), "--runroot", p.at("run"), "--tmpdir", p.at("tmp"), "--network-config-dir", p.at("networks")}
}

// EndPodman ends podman's service; containers go on. [Scenario.StartPodman] must follow.
func (s *Scenario) EndPodman(signal syscall.Signal) {
	s.Helper()
	s.must(s.machine.(*dockerMachine).podman.stop(signal))
}

// StartPodman starts the service again.
func (s *Scenario) StartPodman() { s.Helper(); s.must(s.machine.(*dockerMachine).podman.start()) }

// StoreAlone leaves a container of this name that podman's storage has and its database
// doesn't know, as a podman that ends while it creates one does; with builds: one of
// buildah's. It returns what says whether it is there, and what removes it.
func (s *Scenario) StoreAlone(name string, builds bool) (there func() bool, remove func()) {
	s.Helper()
	m := s.machine.(*dockerMachine)
	database := m.podman.at("data/libpod/bolt_state.db")
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
	dirs, err := filepath.Glob(m.podman.at("data/*-containers/" + made.ID + "/userdata"))
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
	remove = func() { _ = exec.Command("podman", append(m.podman.places(), "rm", "-f", made.ID)...).Run() }
	s.Cleanup(remove)
	return there, remove
}

// logSize is the bound of a container's log, which podman's own API shows alone.
func (p *podman) logSize(id string) (int64, error) {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.at("podman.sock"))
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

// accept writes podmanSettings where the programs of a scenario read the user's, beside
// what a test has there.
func (p *podman) accept(home string, env []string) error {
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
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	file := filepath.Join(config, "workshop", "config.yaml")
	have, err := os.ReadFile(file)
	if err == nil && strings.Contains(string(have), podmanSettings) || config == "/nonexistent" {
		return nil
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, append(have, podmanSettings...), 0o600))
}
