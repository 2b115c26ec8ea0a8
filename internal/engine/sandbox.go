package engine

import (
	"slices"

	"github.com/llmdo/workshop/compose"
)

// Sandbox returns the OCI runtime by which the engine gives a worker a kernel in user space;
// empty: it can't, and do says what to do.
func (i *Info) Sandbox() (runtime, do string) {
	switch {
	case i.Flavour != FlavourDocker:
		return "", "use `--engine docker`: on this engine nobody has tried gVisor"
	case i.Daemon.Rootless:
		return "", "use a Docker that runs as root: with rootless Docker nobody has tried gVisor"
	case slices.Contains(i.Runtimes, compose.GVisorRuntime):
		return compose.GVisorRuntime, ""
	}
	return "", "install gVisor's runsc, add `" + `"runtimes": {"` + compose.GVisorRuntime + `": {"path": "/usr/local/bin/runsc", "runtimeArgs": ["--host-uds=open", "--network=sandbox"]}}` +
		"` to /etc/docker/daemon.json, and restart Docker: `sudo systemctl restart docker`"
}
