package engine

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
)

// gvisorFlags are the flags with which gVisor's runtime may be registered, by their values
// (gvisor: runsc/config/flags.go). All others are refused: some open the machine's network or
// its sockets to a worker, drop its limits, or let its creator change them.
var gvisorFlags = map[string][]string{
	"host-uds":            {"open"},
	"network":             {"sandbox"},
	"platform":            {"systrap", "ptrace", "kvm"},
	"directfs":            {"true", "false"},
	"oci-seccomp":         {"true", "false"},
	"overlay2":            {"none", "root:self", "root:memory"},
	"file-access":         {"exclusive", "shared"},
	"file-access-mounts":  {"shared"},
	"systemd-cgroup":      {"true", "false"},
	"ignore-cgroups":      {"false"},
	"net-raw":             {"false"},
	"host-fifo":           {"none"},
	"allow-flag-override": {"false"},
	"debug":               {"false"},
	"watchdog-action":     {"log", "panic"},
}

// badGVisorFlags returns those of the flags that gVisor's runtime may not be registered with,
// and those that are missing.
func badGVisorFlags(args []string) (bad []string) {
	open := false
	for _, arg := range args {
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !given {
			value = "true"
		}
		if !strings.HasPrefix(arg, "-") || !slices.Contains(gvisorFlags[name], value) {
			bad = append(bad, arg)
		}
		open = open || name == "host-uds"
	}
	if !open {
		bad = append(bad, "no --host-uds=open")
	}
	return bad
}

// registerGVisor is how gVisor's runtime is registered.
const registerGVisor = "write `" + `"runtimes": {"` + compose.GVisorRuntime + `": {"path": "/usr/local/bin/runsc", "runtimeArgs": ["--host-uds=open", "--network=sandbox"]}}` +
	"` in /etc/docker/daemon.json, and restart Docker: `sudo systemctl restart docker`"

// UseDocker is what to do on an engine on which nobody has tried gVisor.
const UseDocker = "use Docker: `--engine docker`"

// gvisor says whether the engine gives workers a kernel in user space.
func (i *Info) gvisor() (f compose.KernelFacts) {
	bad := badGVisorFlags(i.Daemon.GVisorFlags)
	switch {
	case i.Flavour != FlavourDocker:
		f.Why, f.Do = "nobody has tried gVisor on this engine", UseDocker
	case i.Daemon.Rootless:
		f.Why, f.Do = "nobody has tried gVisor with rootless Docker", "use a Docker that runs as root: `docker context use default`"
	case !slices.Contains(i.Runtimes, compose.GVisorRuntime):
		f.Why, f.Do = "the engine has no runtime "+compose.GVisorRuntime, "install gVisor's runsc, "+registerGVisor
	case len(bad) > 0:
		f.Why, f.Do = "the runtime "+compose.GVisorRuntime+" is registered with flags that may open it ("+strings.Join(bad, ", ")+")", registerGVisor
	default:
		f.Mechanism, f.Runtime = compose.MechanismGVisor, compose.GVisorRuntime
	}
	return f
}
