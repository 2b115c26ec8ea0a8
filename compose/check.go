package compose

import (
	"fmt"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
)

// Violation is a promise (boundary, B1 to B12) that a project does not keep.
type Violation struct {
	Promise string // "B3"
	Service string // empty for the project as a whole
	Detail  string
}

// String returns "B3: service worker: detail".
func (v Violation) String() string {
	if v.Service == "" {
		return v.Promise + ": " + v.Detail
	}
	return v.Promise + ": service " + v.Service + ": " + v.Detail
}

// Check returns the ways in which a compiled project breaks the boundary; nil means
// in none. It shares no code with the compile and looks at nothing but the
// project, what role each service has, and what the file declared. Labels and
// names decide nothing. What it does not know is a violation, so that a new
// key of Compose opens nothing. Run it again before every `up`.
func Check(c *Compiled) []Violation {
	k := &checker{c: c}
	k.countMounts()
	k.project()
	for _, name := range sortedKeys(c.Project.Services) {
		s := c.Project.Services[name]
		k.service = name
		switch c.Roles[name] {
		case RoleWorker:
			k.common(&s)
			k.worker(&s)
		case RoleRoom:
			k.common(&s)
			k.room(&s)
		case RoleGuard:
			k.common(&s)
			k.guard(&s)
		case RoleOutlet:
			k.common(&s)
			k.outlet(&s)
		default:
			k.add("B6", "the service is not part of the compiled project")
		}
		k.unknown(s)
	}
	return k.found
}

type checker struct {
	c       *Compiled
	service string
	found   []Violation
	mounted map[string]int // volumes by how often they are mounted
}

func (k *checker) add(promise, format string, args ...any) {
	k.found = append(k.found, Violation{promise, k.service, fmt.Sprintf(format, args...)})
}

// must adds a violation unless ok.
func (k *checker) must(ok bool, promise, format string, args ...any) {
	if !ok {
		k.add(promise, format, args...)
	}
}

// project checks what is not in a service.
func (k *checker) project() {
	p := k.c.Project
	k.must(len(p.Secrets) == 0 && len(p.Configs) == 0, "B11", "secrets and configs of Compose are not used")
	k.must(len(p.Jobs) == 0 && len(p.Models) == 0 && len(p.DisabledServices) == 0 && len(p.Extensions) == 0,
		"B6", "jobs, models, extensions and disabled services are not used")
	for _, name := range sortedKeys(k.c.Roles) {
		_, ok := p.Services[name]
		k.must(ok, "B6", "service %s is missing", name)
	}
	for _, name := range sortedKeys(p.Volumes) {
		v := p.Volumes[name]
		k.must(bool(v.External) == isTools(name), "B7", "volume %s: only the tool volume exists outside the project", name)
		// The local driver would mount any directory of the host.
		k.must(len(v.DriverOpts) == 0 && (v.Driver == "" || v.Driver == "local"), "B7", "volume %s has driver options", name)
		if _, cache := k.c.Caches[name]; cache && k.c.Facts != nil {
			k.must(k.cacheName(name, v.Name), "B3", "the cache %s is called %q, which does not say what its worker is granted", name, v.Name)
			continue
		}
		k.must(bool(v.External) || v.Name == "", "B7", "volume %s is another project's", name)
	}
	for _, name := range sortedKeys(p.Networks) {
		n := p.Networks[name]
		k.must(name == defaultNetwork && n.Driver == "bridge" && !bool(n.External) && n.Name == "" && len(n.DriverOpts) == 0,
			"B6", "network %s is not the guard's own bridge", name)
	}
	k.seccomp()
}

// allowedSysctls are set where a room is made, and nowhere else.
var allowedSysctls = map[string]string{
	"net.ipv4.ip_unprivileged_port_start": "1024",
	"net.ipv6.conf.all.disable_ipv6":      "0",
}

// unknown refuses every key that no check looked at: what is known is cleared,
// the rest must be zero.
func (k *checker) unknown(s types.ServiceConfig) {
	s.Name, s.Image, s.PullPolicy, s.Build, s.User = "", "", "", nil, ""
	s.Entrypoint, s.Init, s.Restart, s.HealthCheck, s.StopGracePeriod = nil, nil, "", nil, nil
	s.CapAdd, s.CapDrop, s.SecurityOpt, s.ReadOnly, s.Ipc = nil, nil, nil, false, ""
	s.MemLimit, s.MemSwapLimit, s.CPUS, s.PidsLimit, s.ShmSize, s.Ulimits = 0, 0, 0, 0, 0, nil
	s.NetworkMode, s.Networks, s.Ports, s.Sysctls, s.DependsOn = "", nil, nil, nil, nil
	s.Hostname, s.ExtraHosts, s.DNS, s.DNSSearch, s.DNSOpts = "", nil, nil, nil, nil
	s.Environment, s.Volumes, s.Tmpfs = nil, nil, nil
	s.WorkingDir, s.Runtime, s.Logging, s.Labels = "", "", nil, nil
	for _, field := range nonZero(s) {
		k.add("B6", "%s is not a key that is compiled", field)
	}
}

func sameSet(have []string, want ...string) bool {
	have = slices.Sorted(slices.Values(have))
	slices.Sort(want)
	return slices.Equal(have, want)
}
