package supervisor

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// Bounds of what a container may ask of its supervisor.
const (
	maxName  = 200
	maxGrace = 24 * time.Hour
	maxFiles = 1000
	maxPorts = 1024
)

// check looks at what the supervisor itself acts on. The rest, what the
// container is, package container looks at.
func check(c *spec.Container) error {
	if c.Version != spec.Version {
		return fmt.Errorf("the container is of version %d of the form, this program knows %d", c.Version, spec.Version)
	}
	if !validService(c.Service) {
		return fmt.Errorf("%q is not a service name", clip.Bytes(c.Service, maxText))
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("service %s: %s", c.Service, fmt.Sprintf(format, args...))
	}
	switch c.Role {
	case spec.Worker, spec.Room, spec.Guard:
	default:
		return bad("it has the role %q", clip.Bytes(string(c.Role), maxText))
	}
	switch c.Network.Mode {
	case spec.NetNone, spec.NetRoom, spec.NetHost:
		if c.Network.Of != "" {
			return bad("its network is %s, and of %q", c.Network.Mode, clip.Bytes(c.Network.Of, maxText))
		}
	case spec.NetJoin:
		if !validService(c.Network.Of) || c.Network.Of == c.Service {
			return bad("it can't join the network of %q", clip.Bytes(c.Network.Of, maxText))
		}
	default:
		return bad("it has the network %q", clip.Bytes(string(c.Network.Mode), maxText))
	}
	// Whatever else goes wrong: a worker in the machine's network has no rules.
	if (c.Network.Mode == spec.NetHost) != (c.Role == spec.Guard) {
		return bad("the machine's network is the guard's and nobody else's")
	}
	switch c.Restart {
	case "", spec.RestartNo, spec.RestartUnlessStopped:
	default:
		return bad("it has the restart policy %q", clip.Bytes(string(c.Restart), maxText))
	}
	switch {
	case len(c.Process.Args) == 0:
		return bad("it has no program")
	case c.Grace < 0 || c.Grace > maxGrace:
		return bad("its grace is %v", c.Grace)
	case c.Log.MaxSize <= 0 || c.Log.MaxFiles <= 0 || c.Log.MaxFiles > maxFiles:
		return bad("its log has %d files of %d bytes", c.Log.MaxFiles, c.Log.MaxSize)
	case !c.Limits.Unlimited && (c.Limits.Memory <= 0 || c.Limits.PIDs <= 0 || !(c.Limits.CPUs > 0)):
		return bad("it has no limit of memory, cpus or pids (B5)")
	case len(c.Ports) > 0 && c.Role != spec.Guard:
		return bad("it has ports, which only a guard has")
	case len(c.Ports) > maxPorts:
		return bad("it has %d ports", len(c.Ports))
	}
	for _, p := range c.Ports {
		if _, err := address(p); err != nil {
			return bad("%v", err)
		}
	}
	return nil
}

// validService: the name is a part of paths too.
func validService(name string) bool {
	if name == "" || len(name) > maxName || strings.Trim(name, ".") == "" {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func address(p spec.Port) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(p.Address)
	if err != nil {
		return a, fmt.Errorf("%q is not an address with a port", clip.Bytes(p.Address, maxText))
	}
	if a.Port() == 0 || p.Target == 0 {
		return a, errors.New("a port is 0")
	}
	return a, nil
}
