//go:build linux

package ownengine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// netns makes a /run/netns of the caller's own, where podman has the network namespaces of
// its containers.
const netns = "mkdir -p /run/netns && mount -t tmpfs -o mode=755 tmpfs /run/netns && mount --make-shared /run/netns"

// Podman is a `podman system service` of this run, as root.
type Podman struct{ Service }

// NewPodman starts one: in the namespaces of this process, which must not be the machine's,
// or apart, in a network and a mount namespace of its own.
func NewPodman(apart bool) (*Podman, error) {
	dir, err := os.MkdirTemp("/tmp", "workshop-podman.")
	if err != nil {
		return nil, err
	}
	p := &Podman{Service{Dir: dir}}
	p.Host = "unix://" + p.At("podman.sock")
	p.Env = append(os.Environ(), "CONTAINERS_CONF="+p.At("containers.conf"))
	p.Argv = append(append([]string{"podman"}, p.Places()...), "--log-level", "warn", "system", "service", "--time=0", p.Host)
	if apart {
		p.Argv = append([]string{"unshare", "--net", "--mount", "sh", "-c", "ip link set lo up && " + netns + ` && exec "$0" "$@"`}, p.Argv...)
	} else if out, err := exec.Command("sh", "-c", netns).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("/run/netns: %w\n%s", err, out)
	}
	if err := os.WriteFile(p.At("containers.conf"), []byte(podmanConf), 0o600); err != nil {
		return nil, err
	}
	return p, p.Start()
}

// Places are the options that say where it keeps things.
func (p *Podman) Places() []string {
	return []string{"--root", p.At("data"), "--runroot", p.At("run"), "--tmpdir", p.At("tmp"), "--network-config-dir", p.At("networks")}
}

// AcceptPodman adds to a user's settings what has to be accepted of it.
func AcceptPodman(file string) error { return AddSettings(file, podmanSettings) }

// AddSettings adds lines to a user's settings, unless they are there.
func AddSettings(file, lines string) error {
	have, err := os.ReadFile(file)
	if err == nil && strings.Contains(string(have), lines) {
		return nil
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, append(have, lines...), 0o600))
}
