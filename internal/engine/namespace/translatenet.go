package namespace

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// holder returns the service whose names a container has: host name, hosts and
// resolvers belong to the network namespace.
func (t *translation) holder() types.ServiceConfig {
	if of, ok := strings.CutPrefix(t.s.NetworkMode, types.ServicePrefix); ok {
		return t.c.Project.Services[of]
	}
	return t.s
}

// network sets the network namespace, its sysctls and its names.
func (t *translation) network() error {
	n := &t.out.Network
	of, joins := strings.CutPrefix(t.s.NetworkMode, types.ServicePrefix)
	switch {
	case joins:
		if t.role != spec.Worker && t.role != spec.Outlet || t.c.RoomOf[t.name] != of || roles[t.c.Roles[of]] != spec.Room {
			return fmt.Errorf("network_mode %q: only a worker and its outlet join a network, that of their own room", t.s.NetworkMode)
		}
		n.Mode, n.Of = spec.NetJoin, of
	case t.s.NetworkMode == "none" && t.role == spec.Room:
		n.Mode, n.AnyIP = spec.NetRoom, true // docs/decisions/anyip.md
	case t.s.NetworkMode == "none" && t.role == spec.Worker:
		n.Mode = spec.NetNone
	case t.s.NetworkMode == "" && t.role == spec.Guard && len(t.s.Networks) == 1:
		key := sortedKeys(t.s.Networks)[0]
		if t.s.Networks[key] != nil {
			return fmt.Errorf("network %q has settings for the guard, which uses the machine's network on this engine", key)
		}
		if err := checkNetwork(t.c.Project, key); err != nil {
			return err
		}
		n.Mode = spec.NetHost
	default:
		return fmt.Errorf("the namespace engine does not support a %s with network_mode %q and %d networks", t.role, t.s.NetworkMode, len(t.s.Networks))
	}
	if len(t.s.Sysctls) > 0 {
		if n.Mode != spec.NetRoom && n.Mode != spec.NetNone {
			return fmt.Errorf("sysctls require its own network")
		}
		t.out.Sysctls = t.s.Sysctls
	}
	return t.names()
}

// checkNetwork refuses a network with more settings than a name.
func checkNetwork(p *types.Project, key string) error {
	network, ok := p.Networks[key]
	if !ok {
		return fmt.Errorf("network %q is not in the project", key)
	}
	if err := checkKnown("network "+key, network); err != nil {
		return err
	}
	if network.Driver != "" && network.Driver != "bridge" {
		return fmt.Errorf("network %q has the driver %q, but the guard uses the machine's network on this engine", key, network.Driver)
	}
	return nil
}

// names writes the files that Docker writes for a container without a network
// (libnetwork: etchosts.Build, resolvconf.Build).
func (t *translation) names() error {
	h := t.holder()
	hosts := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nff00::0\tip6-mcastprefix\nff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n"
	for _, name := range sortedKeys(h.ExtraHosts) {
		for _, address := range h.ExtraHosts[name] {
			if _, err := netip.ParseAddr(address); err != nil || strings.ContainsAny(name, " \t\n") {
				return fmt.Errorf("extra_hosts: %q is not a name with an address", name+":"+address)
			}
			hosts += address + "\t" + name + "\n"
		}
	}
	t.file("/etc/hosts", hosts)
	t.file("/etc/hostname", t.out.Hostname+"\n")
	if t.out.Network.Mode == spec.NetHost {
		if len(h.DNS)+len(h.DNSSearch)+len(h.DNSOpts) > 0 {
			return fmt.Errorf("dns settings of a guard are not supported: it uses the machine's resolvers")
		}
		return nil
	}
	for _, s := range slices.Concat(h.DNS, h.DNSSearch, h.DNSOpts) {
		if s == "" || strings.ContainsAny(s, " \t\n") {
			return fmt.Errorf("dns: %q is not one word", s)
		}
	}
	resolv := ""
	if search := strings.Join(h.DNSSearch, " "); search != "" && search != "." {
		resolv = "search " + search + "\n"
	}
	for _, server := range h.DNS {
		if _, err := netip.ParseAddr(server); err != nil {
			return fmt.Errorf("dns: %q is not an address", server)
		}
		resolv += "nameserver " + server + "\n"
	}
	if len(h.DNSOpts) > 0 {
		resolv += "options " + strings.Join(h.DNSOpts, " ") + "\n"
	}
	t.file("/etc/resolv.conf", resolv)
	return nil
}

// file adds a file of the container, unless the project mounts one there.
func (t *translation) file(name, data string) {
	if slices.ContainsFunc(t.out.Mounts, func(m spec.Mount) bool { return path.Clean(m.Target) == name }) {
		return
	}
	t.out.Files = append(t.out.Files, spec.File{Path: name, Data: data, Mode: 0o644})
}

// ports sets the published ports of the guard; the supervisor listens on them.
func (t *translation) ports() error {
	if len(t.s.Ports) > 0 && t.role != spec.Guard {
		return fmt.Errorf("ports are published by the guard alone")
	}
	for _, p := range t.s.Ports {
		if p.Mode != "" && p.Mode != "host" && p.Mode != "ingress" {
			return fmt.Errorf("unknown port mode %q", p.Mode)
		}
		if p.Protocol != "" && p.Protocol != "tcp" {
			return fmt.Errorf("port %d has the protocol %q, but only tcp is supported", p.Target, p.Protocol)
		}
		if p.HostIP == "" {
			return fmt.Errorf("port %d is published without an address (B10)", p.Target)
		}
		address, err := netip.ParseAddr(strings.Trim(p.HostIP, "[]"))
		if err != nil {
			return fmt.Errorf("port %d is published on %q, which is not an address", p.Target, p.HostIP)
		}
		port, err := strconv.ParseUint(p.Published, 10, 16)
		if err != nil || port == 0 || p.Target == 0 || p.Target > 65535 {
			return fmt.Errorf("port %q to %d is not one port", p.Published, p.Target)
		}
		if int(port) < t.m.firstPort {
			return &engine.RefusedError{
				Reason: fmt.Sprintf("only root may listen on port %d, which %s publishes", port, t.c.Publisher(p.Published)),
				Do:     "publish another one, as in `\"8080:" + strconv.Itoa(int(p.Target)) + "\"`",
			}
		}
		t.out.Ports = append(t.out.Ports, spec.Port{
			Address: netip.AddrPortFrom(address, uint16(port)).String(), Target: uint16(p.Target), Worker: t.c.Publisher(p.Published),
		})
	}
	return nil
}
