//go:build linux

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
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

// podman is a `podman system service` of this run, with everything in one directory.
type podman struct {
	dir  string
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *podman) at(name string) string { return filepath.Join(p.dir, name) }

func (p *podman) host() string { return "unix://" + p.at("podman.sock") }

// newPodman starts one in the namespaces of this process, and makes it the engine of
// everything that the run does.
func newPodman() (*podman, error) {
	dir, err := os.MkdirTemp("/tmp", "workshop-e2e-podman.")
	if err != nil {
		return nil, err
	}
	p := &podman{dir: dir}
	if err := errors.Join(os.MkdirAll("/run/netns", 0o755), unix.Mount("tmpfs", "/run/netns", "tmpfs", 0, "mode=755"), unix.Mount("", "/run/netns", "", unix.MS_SHARED, ""),
		os.WriteFile(p.at("containers.conf"), []byte(podmanConf), 0o600), os.Setenv("DOCKER_HOST", p.host())); err != nil {
		return nil, err
	}
	return p, p.start()
}

// start starts the service again after [podman.stop].
func (p *podman) start() error {
	log, err := os.OpenFile(p.at("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command("podman", "--root", p.at("data"), "--runroot", p.at("run"), "--tmpdir", p.at("tmp"), "--network-config-dir", p.at("networks"),
		"--log-level", "warn", "system", "service", "--time=0", p.host())
	p.cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+p.at("containers.conf"))
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) { _ = cmd.Wait(); close(done) }(p.cmd, p.done)
	c, err := client.NewClientWithOpts(client.WithHost(p.host()))
	if err != nil {
		return err
	}
	defer c.Close()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err = c.Ping(context.Background()); err == nil {
			return nil
		}
		select {
		case <-p.done:
			end = time.Now()
		default:
		}
	}
	b, _ := os.ReadFile(p.at("log"))
	return fmt.Errorf("podman's service does not start: %w\n%s", err, b[max(0, len(b)-2000):])
}

// stop ends the service; containers go on.
func (p *podman) stop(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// remove ends the service with all that it has.
func (p *podman) remove(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	all, _ := c.ContainerList(ctx, container.ListOptions{All: true})
	for range 2 { // a room goes after those that joined it
		for _, k := range all {
			_ = c.ContainerRemove(ctx, k.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		}
	}
	p.stop(syscall.SIGTERM)
	p.killRest()
	mounts, _ := os.ReadFile("/proc/self/mounts")
	var below []string
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], p.dir+"/") {
			below = append(below, f[1])
		}
	}
	slices.Sort(below)
	for _, m := range slices.Backward(below) {
		_ = unix.Unmount(m, unix.MNT_DETACH)
	}
	if err := os.RemoveAll(p.dir); err != nil {
		fmt.Fprintf(os.Stderr, "podman: left behind: %v\n", err)
	}
}

// EndPodman ends podman's service; containers go on. [Scenario.StartPodman] must follow.
func (s *Scenario) EndPodman(signal syscall.Signal) {
	s.Helper()
	s.machine.(*dockerMachine).podman.stop(signal)
}

// StartPodman starts the service again.
func (s *Scenario) StartPodman() { s.Helper(); s.must(s.machine.(*dockerMachine).podman.start()) }

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

// killRest ends what podman leaves for a while: the monitors of commands, known by the
// directory on their command line.
func (p *podman) killRest() {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		b, _ := os.ReadFile(file)
		name, _, _ := strings.Cut(string(b), "\x00")
		if base := filepath.Base(name); (base == "conmon" || base == "podman") && strings.Contains(string(b), p.dir+"/") {
			kill(filepath.Base(filepath.Dir(file)))
		}
	}
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
