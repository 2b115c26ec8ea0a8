package container

import (
	"fmt"
	"path"
	"strings"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Check checks a container before anything is started. A valid one can still fail
// on the machine.
func Check(c *spec.Container) error {
	if c == nil {
		return fmt.Errorf("no container")
	}
	if c.Version != spec.Version {
		return fmt.Errorf("container %s: spec version %d, want %d: use programs of one version", c.Name, c.Version, spec.Version)
	}
	for _, check := range []func(*spec.Container) error{checkProcess, checkMounts, checkFiles, checkNetwork, checkLimits} {
		if err := check(c); err != nil {
			return fmt.Errorf("container %s: %w", c.Name, err)
		}
	}
	return nil
}

func checkProcess(c *spec.Container) error {
	p := c.Process
	if len(p.Args) == 0 || !clean(p.Args[0]) {
		return fmt.Errorf("the program %q is not an absolute path", p.Args)
	}
	if !clean(p.Cwd) {
		return fmt.Errorf("the working directory %q is not an absolute path", p.Cwd)
	}
	for _, s := range append(append([]string{c.Hostname}, p.Args...), p.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("%q contains a zero byte", s)
		}
	}
	for _, e := range p.Env {
		if strings.IndexByte(e, '=') < 1 {
			return fmt.Errorf("%q is not a variable with a value", e)
		}
	}
	if len(c.Hostname) > 64 { // __NEW_UTS_LEN
		return fmt.Errorf("the host name %q is longer than 64 bytes", c.Hostname)
	}
	for _, name := range c.Capabilities {
		if _, ok := capabilities[name]; !ok {
			return fmt.Errorf("the capability %q is not allowed", name)
		}
	}
	if n := len(c.Seccomp); n == 0 || n%8 != 0 || n > 8*4096 { // struct sock_filter, BPF_MAXINSNS
		return fmt.Errorf("a seccomp filter of %d bytes is not valid", n)
	}
	for _, name := range c.Devices {
		if name != kvmDevice || c.Role != spec.Worker {
			return fmt.Errorf("a %s can't have the device %q (B6)", c.Role, name)
		}
	}
	if c.OOMScore < -1000 || c.OOMScore > 1000 {
		return fmt.Errorf("oom_score_adj %d is not between -1000 and 1000", c.OOMScore)
	}
	return nil
}

// clean reports whether p is a clean absolute path without zero bytes.
func clean(p string) bool {
	return strings.HasPrefix(p, "/") && path.Clean(p) == p && strings.IndexByte(p, 0) < 0 && len(p) < 4096
}

// reserved are directories that every container gets.
var reserved = []string{"/proc", "/sys", "/dev"}

func checkTarget(target string) error {
	if !clean(target) || target == "/" {
		return fmt.Errorf("the target %q is not an absolute path below the root", target)
	}
	for _, r := range reserved {
		if subpath.Within(target, r) {
			return fmt.Errorf("the target %s is in %s, which every container gets", target, r)
		}
	}
	return nil
}

func checkMounts(c *spec.Container) error {
	if c.Root.Dir != "" && (!clean(c.Root.Dir) || c.Root.Dir == "/") {
		return fmt.Errorf("the root %q is not an absolute path of a directory", c.Root.Dir)
	}
	for i, m := range c.Mounts {
		if err := checkTarget(m.Target); err != nil {
			return err
		}
		for _, earlier := range c.Mounts[:i] {
			if m.Target != earlier.Target && subpath.Within(earlier.Target, m.Target) {
				return fmt.Errorf("the mount at %s would cover the earlier one at %s", m.Target, earlier.Target)
			}
		}
		switch m.Type {
		case spec.Bind:
			if !clean(m.Source) {
				return fmt.Errorf("the source %q of %s is not an absolute path", m.Source, m.Target)
			}
			if m.Source == "/" {
				return fmt.Errorf("the source of %s is the machine's root", m.Target)
			}
			if m.Size != 0 || m.Mode != 0 || m.UID != 0 || m.GID != 0 {
				return fmt.Errorf("the bind at %s must not have a size, a mode or an owner", m.Target)
			}
		case spec.Tmpfs:
			if m.Source != "" || m.ReadOnly || m.Recursive {
				return fmt.Errorf("the tmpfs at %s must not have a source or be read-only or recursive", m.Target)
			}
			if m.Size <= 0 {
				return fmt.Errorf("the tmpfs at %s has no size", m.Target)
			}
			if m.Mode&^0o1777 != 0 {
				return fmt.Errorf("the tmpfs at %s: mode %o is not valid", m.Target, m.Mode)
			}
		default:
			return fmt.Errorf("the mount at %s has the unknown type %q", m.Target, m.Type)
		}
	}
	return nil
}

func checkFiles(c *spec.Container) error {
	for _, f := range c.Files {
		if err := checkTarget(f.Path); err != nil {
			return err
		}
		if f.Mode&^0o777 != 0 {
			return fmt.Errorf("the file %s: mode %o is not valid", f.Path, f.Mode)
		}
	}
	return nil
}

func checkNetwork(c *spec.Container) error {
	switch c.Network.Mode {
	case spec.NetNone, spec.NetRoom:
	case spec.NetJoin, spec.NetHost:
		if len(c.Sysctls) > 0 {
			return fmt.Errorf("sysctls require a new network namespace")
		}
	default:
		return fmt.Errorf("the network mode %q is unknown", c.Network.Mode)
	}
	if c.Network.AnyIP && (c.Network.Mode != spec.NetRoom || c.Role != spec.Room) {
		return fmt.Errorf("only a room may do without netfilter")
	}
	if c.Network.Mode == spec.NetHost && len(c.Capabilities) > 0 {
		return fmt.Errorf("a container in the machine's network must not have capabilities")
	}
	for name, value := range c.Sysctls {
		if _, err := sysctlPath(name); err != nil {
			return err
		}
		if value == "" || len(value) > 256 {
			return fmt.Errorf("the sysctl %s: value %q is not valid", name, value)
		}
	}
	return nil
}

// sysctlPath returns the file of a sysctl below /proc/sys.
func sysctlPath(name string) (string, error) {
	bad := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.") != "" || strings.Contains(name, "..") || strings.HasSuffix(name, ".")
	if bad || !strings.HasPrefix(name, "net.") {
		return "", fmt.Errorf("the sysctl %q does not belong to a network namespace", name)
	}
	return strings.ReplaceAll(name, ".", "/"), nil
}

func checkLimits(c *spec.Container) error {
	if c.Limits.Shm < 0 {
		return fmt.Errorf("/dev/shm: size %d is not valid", c.Limits.Shm)
	}
	for _, r := range c.Rlimits {
		if _, ok := rlimits[r.Name]; !ok {
			return fmt.Errorf("the limit %q is unknown", r.Name)
		}
		if r.Soft > r.Hard {
			return fmt.Errorf("the limit %s: the soft value %d exceeds the hard value %d", r.Name, r.Soft, r.Hard)
		}
	}
	return nil
}
