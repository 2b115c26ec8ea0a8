package lifecycle

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
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
			a.WriteLine(w.Name + ": " + grant.MountsText(w.Container.Mounts, grant.Values) + text)
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
		parts = append(parts, grant.MountsText(c.Mounts, grant.Values), grant.NetworkText(&c.Network, grant.Values)+portsText(w, ports))
		if len(c.Secrets) > 0 {
			parts = append(parts, grant.SecretsText(c.Secrets))
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
		parts = append(parts, grant.LimitsText(&c.Resources))
	}
	return w.Name + ": " + strings.Join(parts, "; ")
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
