package docker

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/strslice"
	"github.com/docker/go-connections/nat"
	"github.com/docker/go-units"

	"github.com/llmdo/workshop/internal/engine"
)

func (t translation) host(joins string) (*container.HostConfig, error) {
	s := t.s
	h := &container.HostConfig{
		CapAdd: strslice.StrSlice(s.CapAdd), CapDrop: strslice.StrSlice(s.CapDrop),
		CgroupnsMode: container.CgroupnsMode(engine.CgroupNamespace),
		DNS:          slices.Clone([]string(s.DNS)), DNSOptions: slices.Clone(s.DNSOpts), DNSSearch: slices.Clone([]string(s.DNSSearch)),
		IpcMode: container.IpcMode(s.Ipc), Init: s.Init, OomScoreAdj: int(s.OomScoreAdj),
		ReadonlyRootfs: s.ReadOnly, Runtime: s.Runtime, ShmSize: int64(s.ShmSize),
		Sysctls: s.Sysctls, UsernsMode: container.UsernsMode(s.UserNSMode),
		Resources: container.Resources{
			Memory: int64(s.MemLimit), MemoryReservation: int64(s.MemReservation), MemorySwap: int64(s.MemSwapLimit),
		},
	}
	h.ExtraHosts = extraHosts(s)
	if s.PidsLimit != 0 {
		h.PidsLimit = &s.PidsLimit
	}
	if s.CPUS != 0 {
		h.NanoCPUs = nanoCPUs(s.CPUS)
	}
	for _, name := range sortedKeys(s.Ulimits) {
		h.Ulimits = append(h.Ulimits, ulimit(name, s.Ulimits[name]))
	}
	if s.Logging != nil {
		h.LogConfig = container.LogConfig{Type: s.Logging.Driver, Config: s.Logging.Options}
	}
	var err error
	if h.RestartPolicy, err = restart(s.Restart); err != nil {
		return nil, err
	}
	if h.SecurityOpt, err = t.securityOpt(); err != nil {
		return nil, err
	}
	if h.NetworkMode, err = t.networkMode(joins); err != nil {
		return nil, err
	}
	if err := t.mounts(h); err != nil {
		return nil, err
	}
	return h, nil
}

// extraHosts returns NAME:ADDRESS of a service's names.
func extraHosts(s types.ServiceConfig) (out []string) {
	for _, host := range sortedKeys(s.ExtraHosts) {
		for _, address := range s.ExtraHosts[host] {
			out = append(out, host+":"+address)
		}
	}
	return out
}

// nanoCPUs converts by the shortest decimal, so that 0.1 is 100000000 and not the
// float's 100000001.
func nanoCPUs(cpus float32) int64 {
	f, err := strconv.ParseFloat(strconv.FormatFloat(float64(cpus), 'f', -1, 32), 64)
	if err != nil {
		f = float64(cpus)
	}
	return int64(math.Round(f * 1e9))
}

func ulimit(name string, u *types.UlimitsConfig) *units.Ulimit {
	if u.Single != 0 {
		return &units.Ulimit{Name: name, Soft: int64(u.Single), Hard: int64(u.Single)}
	}
	return &units.Ulimit{Name: name, Soft: int64(u.Soft), Hard: int64(u.Hard)}
}

func restart(policy string) (container.RestartPolicy, error) {
	switch policy {
	case "", types.RestartPolicyNo:
		return container.RestartPolicy{Name: container.RestartPolicyDisabled}, nil
	case types.RestartPolicyUnlessStopped, types.RestartPolicyAlways, types.RestartPolicyOnFailure:
		return container.RestartPolicy{Name: container.RestartPolicyMode(policy)}, nil
	}
	return container.RestartPolicy{}, fmt.Errorf("unknown restart policy %q", policy)
}

// securityOpt replaces the path of the seccomp profile in the generated file by the
// profile.
func (t translation) securityOpt() ([]string, error) {
	var out []string
	for _, opt := range t.s.SecurityOpt {
		key, value, ok := strings.Cut(opt, "=")
		if !ok {
			key, value, ok = strings.Cut(opt, ":")
		}
		switch {
		case key == "seccomp" && value != "unconfined":
			if len(t.c.Seccomp) == 0 {
				return nil, fmt.Errorf("security_opt %q: the project has no seccomp profile", opt)
			}
			out = append(out, "seccomp="+string(t.c.Seccomp))
		case ok:
			out = append(out, key+"="+value)
		default:
			out = append(out, opt)
		}
	}
	return out, nil
}

func (t translation) networkMode(joins string) (container.NetworkMode, error) {
	mode := t.s.NetworkMode
	if service, ok := strings.CutPrefix(mode, types.ServicePrefix); ok {
		if joins == "" {
			return "", fmt.Errorf("network_mode %q: service %s has no container", mode, service)
		}
		return container.NetworkMode("container:" + joins), nil
	}
	if mode != "" {
		return container.NetworkMode(mode), nil
	}
	if len(t.s.Networks) == 0 {
		return "", fmt.Errorf("missing network or network mode")
	}
	return container.NetworkMode(engine.NetworkName(t.c.Project, sortedKeys(t.s.Networks)[0])), nil
}

func (t translation) network(h *container.HostConfig) (*network.NetworkingConfig, error) {
	if t.s.NetworkMode != "" {
		return &network.NetworkingConfig{}, nil
	}
	if len(t.s.Networks) > 1 {
		return nil, fmt.Errorf("the docker engine does not support more than one network")
	}
	key := sortedKeys(t.s.Networks)[0]
	ep := &network.EndpointSettings{}
	if n := t.s.Networks[key]; n != nil {
		ep.Aliases = slices.Clone(n.Aliases)
		if n.Ipv4Address != "" || n.Ipv6Address != "" {
			ep.IPAMConfig = &network.EndpointIPAMConfig{IPv4Address: n.Ipv4Address, IPv6Address: n.Ipv6Address}
		}
	}
	if t.s.Networks[key].ServiceNameAliasEnabled() {
		ep.Aliases = append(ep.Aliases, t.name)
	}
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{string(h.NetworkMode): ep}}, nil
}

func (t translation) ports(c *container.Config, h *container.HostConfig) error {
	for _, exposed := range t.s.Expose {
		port, err := natPort(exposed, "")
		if err != nil {
			return err
		}
		c.ExposedPorts = exposePort(c.ExposedPorts, port)
	}
	for _, p := range t.s.Ports {
		if p.Mode != "" && p.Mode != "host" && p.Mode != "ingress" {
			return fmt.Errorf("unknown port mode %q", p.Mode)
		}
		port, err := natPort(strconv.FormatUint(uint64(p.Target), 10), p.Protocol)
		if err != nil {
			return err
		}
		if p.HostIP == "" {
			// Fail closed: Docker would bind every address (B10).
			return fmt.Errorf("port %s is published without an address", port)
		}
		if p.Published == "" || p.Published == "0" {
			return fmt.Errorf("port %s is published without a number, which is a fact of this machine", port)
		}
		c.ExposedPorts = exposePort(c.ExposedPorts, port)
		if h.PortBindings == nil {
			h.PortBindings = nat.PortMap{}
		}
		h.PortBindings[port] = append(h.PortBindings[port], nat.PortBinding{HostIP: p.HostIP, HostPort: p.Published})
	}
	return nil
}

func natPort(port, protocol string) (nat.Port, error) {
	number, proto, ok := strings.Cut(port, "/")
	if ok {
		protocol = proto
	}
	if protocol == "" {
		protocol = "tcp"
	}
	return nat.NewPort(protocol, number)
}

func exposePort(set nat.PortSet, port nat.Port) nat.PortSet {
	if set == nil {
		set = nat.PortSet{}
	}
	set[port] = struct{}{}
	return set
}
