package docker

import (
	"fmt"
	"net"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
)

// startError replaces the engine's message about a port in use, which is long and
// names neither the worker nor a remedy, and explains that of gVisor.
func (r *run) startError(service string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if strings.Contains(text, "waiting for sandbox to start") { // runsc says it
		// Of its gofer, which binds sources in a user namespace: without what is below, as
		// we ask, the kernel refuses it there (mount_namespaces(7)).
		return fmt.Errorf("%w: gVisor can't have a source with another mount below it: `findmnt -R SOURCE` shows those of one", err)
	}
	if !strings.Contains(text, "port is already allocated") && !strings.Contains(text, "address already in use") {
		return conflict(err)
	}
	for _, p := range r.p.Compiled.Project.Services[service].Ports {
		if mentionsPort(text, p.Published) {
			return engine.PortTaken(r.p.Compiled, net.JoinHostPort(p.HostIP, p.Published), p.Published, err)
		}
	}
	return err
}

// mentionsPort reports whether a text has an address with the port: engines write
// "127.0.0.1:8080", "127.0.0.1:8080/tcp" and the like.
func mentionsPort(text, port string) bool {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, ":"+port)
		if !found {
			return false
		}
		if after == "" || after[0] < '0' || after[0] > '9' {
			return true
		}
		rest = after
	}
}
