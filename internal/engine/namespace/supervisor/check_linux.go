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

// Bounds of what a container may request.
const (
	maxName  = 200
	maxGrace = 24 * time.Hour
	maxFiles = 1000
	maxPorts = 1024
)

// check checks the fields that the supervisor itself uses. The rest is checked by
// package container.
func check(c *spec.Container) error {
	if c.Version != spec.Version {
		return fmt.Errorf("container version %d, want %d", c.Version, spec.Version)
	}
	if !validService(c.Service) {
		return fmt.Errorf("%q is not a service name", clip.Bytes(c.Service, maxText))
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("service %s: %s", c.Service, fmt.Sprintf(format, args...))
	}
	switch c.Role {
	case spec.Worker, spec.Room, spec.Guard, spec.Outlet:
	default:
		return bad("unknown role %q", clip.Bytes(string(c.Role), maxText))
	}
	switch c.Network.Mode {
	case spec.NetNone, spec.NetRoom, spec.NetHost:
		if c.Network.Of != "" {
			return bad("its network is %s, but of %q", c.Network.Mode, clip.Bytes(c.Network.Of, maxText))
		}
	case spec.NetJoin:
		if !validService(c.Network.Of) || c.Network.Of == c.Service {
			return bad("it can't join the network of %q", clip.Bytes(c.Network.Of, maxText))
		}
	default:
		return bad("unknown network mode %q", clip.Bytes(string(c.Network.Mode), maxText))
	}
	// Checked on its own: a worker in the machine's network would have no rules.
	if (c.Network.Mode == spec.NetHost) != (c.Role == spec.Guard) {
		return bad("only the guard may use the machine's network")
	}
	switch c.Restart {
	case "", spec.RestartNo, spec.RestartUnlessStopped:
	default:
		return bad("unknown restart policy %q", clip.Bytes(string(c.Restart), maxText))
	}
	switch {
	case len(c.Process.Args) == 0:
		return bad("it has no program")
	case c.Grace < 0 || c.Grace > maxGrace:
		return bad("grace period %v is not valid", c.Grace)
	case c.Log.MaxSize <= 0 || c.Log.MaxFiles <= 0 || c.Log.MaxFiles > maxFiles:
		return bad("a log of %d files of %d bytes is not valid", c.Log.MaxFiles, c.Log.MaxSize)
	case !c.Limits.Unlimited && (c.Limits.Memory <= 0 || c.Limits.PIDs <= 0 || !(c.Limits.CPUs > 0)):
		return bad("it has no limit of memory, cpus or pids (B5)")
	case len(c.Ports) > 0 && c.Role != spec.Guard:
		return bad("only a guard may have ports")
	case len(c.Ports) > maxPorts:
		return bad("too many ports: %d", len(c.Ports))
	}
	for _, p := range c.Ports {
		if _, err := address(p); err != nil {
			return bad("%v", err)
		}
	}
	return nil
}

// validService reports whether a service's name is valid, also as part of a path.
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
		return a, errors.New("port 0 is not valid")
	}
	return a, nil
}
