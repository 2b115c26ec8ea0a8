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

// ownFlags are those that gVisor's runtime adds by itself, of any value: where it notes
// what it does.
var ownFlags = []string{"root", "log", "log-format", "log-fd", "debug-log-fd", "panic-log-fd"}

// GVisorFlags returns the flags of gVisor's process of a container, by its arguments
// (gvisor: runsc/sandbox/sandbox.go, createSandboxProcess): all that differ from its defaults,
// whoever gave them. nil: they aren't those of such a process.
func GVisorFlags(args []string, container string) []string {
	boot := slices.Index(args, "boot")
	if len(args) == 0 || args[0] != "runsc-sandbox" || boot < 0 || args[len(args)-1] != container {
		return nil
	}
	return args[1:boot:boot]
}

// gvisorField is what is compared by gvisorFlags.
const gvisorField = "flags of gVisor"

// gvisorFlags compares the flags of a gVisor that runs with those that it may be registered with.
// A program that is registered in its place can add others.
func (c *comparison) gvisorFlags() (asked, found string) {
	if !c.OwnKernel {
		return "", ""
	}
	const registered = "as with --host-uds=open --network=sandbox"
	if c.GVisor == nil {
		return registered, "none that can be seen"
	}
	bad := badGVisorFlags(slices.DeleteFunc(slices.Clone(c.GVisor), func(flag string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		return slices.Contains(ownFlags, name)
	}))
	if len(bad) == 0 {
		return registered, registered
	}
	return registered, strings.Join(bad, ", ")
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
	case !i.Local:
		f.Why, f.Do = "the engine is not on this machine, and what gVisor does there can't be seen", "use an engine of this machine: `docker context use default`"
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
