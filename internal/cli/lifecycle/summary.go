package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/workshop"
)

// summary prints a line per worker: what changed, and of a new one, of one about which
// that doesn't say all, or with -v, what it has.
func (a verbs) summary(c *app.Project, can engine.Capabilities, names []string, unlimited bool) {
	ports := a.Ports(c.ProjectRef)
	var closed, listed []string
	for i := range c.Workshop.Workers {
		w := &c.Workshop.Workers[i]
		if len(names) > 0 && !slices.Contains(names, w.Name) {
			continue
		}
		if !can.Contained {
			text := "; its tools run on this machine, without limits"
			if len(w.Container.Caches) > 0 {
				text += " and without the " + grant.CachesText(w.Container.Caches)
			}
			a.WriteLine(w.Name + ": " + mountsText(w.Container.Mounts) + text)
			continue
		}
		listed = append(listed, w.Name)
		a.WriteLine(workerLine(w, ports, a.Changes.Text(w.Name), a.Verbose || a.Changes.Whole(w.Name), unlimited))
		if !app.HasNetwork(w) && w.Container.Network.Source == (diag.Source{}) { // nobody wrote that
			closed = append(closed, w.Name)
		}
	}
	for _, name := range a.Changes.Workers() { // such as one that isn't in the file any more
		if !slices.Contains(listed, name) {
			a.WriteLine(name + ": " + a.Changes.Text(name))
		}
	}
	if len(closed) > 0 && !a.Quiet {
		a.PrintFailure((&app.Failure{}).Hint("%s without network; to open names, write in %s: `network: {mode: restricted, allow: [HOST]}`",
			app.AreText(closed), a.Shown(c.Path)))
	}
}

// workerLine is what was done to a worker, and with whole what it has: mounts, network,
// ports, secrets, caches, runtime, limits.
func workerLine(w *workshop.Worker, ports app.Ports, change string, whole, unlimited bool) string {
	c := &w.Container
	parts := []string{change}
	if whole {
		parts = append(parts, mountsText(c.Mounts), networkText(&c.Network)+portsText(w, ports))
		if len(c.Secrets) > 0 {
			parts = append(parts, app.SecretsText(c.Secrets))
		}
		if len(c.Caches) > 0 {
			parts = append(parts, grant.CachesText(c.Caches))
		}
		if c.Runtime.V != "" {
			parts = append(parts, "runtime "+c.Runtime.V)
		}
	}
	switch {
	case unlimited:
		parts = append(parts, "without limits (B5)")
	case whole:
		parts = append(parts, limitsText(&c.Resources))
	}
	return w.Name + ": " + strings.Join(parts, "; ")
}

// mountsText is "./src on /workspace/src ro, ./out on /out rw".
func mountsText(mounts []workshop.Mount) string {
	if len(mounts) == 0 {
		return "no files"
	}
	parts := make([]string, len(mounts))
	for i, m := range mounts {
		parts[i] = grant.MountText(&m)
	}
	return strings.Join(parts, ", ")
}

// maxHosts are named in a worker's line; the rest is counted.
const maxHosts = 3

// networkText is "network restricted to a, b and 3 more", and through what the
// guard gets there where the file says it.
func networkText(n *workshop.Network) string {
	text := reachText(n)
	if n.Mode.V == firewall.None {
		return text
	}
	if n.Proxy.V != "" {
		text += " through the proxy " + grant.ProxyHost(n.Proxy.V)
	}
	if len(n.DNS) > 0 {
		resolvers := make([]string, len(n.DNS))
		for i, r := range n.DNS {
			resolvers[i] = r.V
		}
		text += ", names by " + strings.Join(resolvers[:min(len(resolvers), maxHosts)], ", ")
		if more := len(resolvers) - maxHosts; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text
}

func reachText(n *workshop.Network) string {
	switch n.Mode.V {
	case firewall.None:
		return "no network"
	case firewall.Open:
		return "network open (any public name, TCP)"
	}
	var hosts []string
	for _, r := range n.Allow {
		host := r.Meant()
		if ports := app.PortsText(r.Ports); ports != "80,443" {
			host += ":" + ports
		}
		if r.Preset != "" {
			host = "preset " + r.Preset
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	switch {
	case len(hosts) == 0:
		return "network restricted to nothing"
	case len(hosts) > maxHosts:
		return fmt.Sprintf("network restricted to %s and %d more", strings.Join(hosts[:maxHosts], ", "), len(hosts)-maxHosts)
	}
	return "network restricted to " + strings.Join(hosts, ", ")
}

// portsText is ", published at 127.0.0.1:8080->8080".
func portsText(w *workshop.Worker, ports app.Ports) string {
	if len(w.Container.Ports) == 0 {
		return ""
	}
	parts := make([]string, len(w.Container.Ports))
	for i, p := range w.Container.Ports {
		parts[i] = ports.Text(w.Name, p)
	}
	return ", published at " + strings.Join(parts, ", ")
}

// limitsText is "2G memory, 1 cpu, 256 pids".
func limitsText(r *workshop.Resources) string {
	return fmt.Sprintf("%s memory, %s cpu, %d pids", r.Memory.V, strconv.FormatFloat(r.CPU.V, 'g', -1, 64), r.PIDs.V)
}
