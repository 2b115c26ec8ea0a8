package compose

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// ports publishes the workers' ports on the guard: a room has no interface to
// publish on. The guard listens on a port of its own for each, in order of
// worker and target, and dials the target on the room's loopback.
func (c *compiler) ports(s *types.ServiceConfig, p *firewall.Policy) {
	type entry struct {
		worker string
		port   *workshop.Port
	}
	var all []entry
	for i := range c.w.Workers {
		w := &c.w.Workers[i]
		if c.out.RoomOf[w.Name] == "" {
			continue // the loader refuses ports without a room
		}
		for j := range w.Container.Ports {
			all = append(all, entry{w.Name, &w.Container.Ports[j]})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.worker, b.worker), cmp.Compare(a.port.Target.V, b.port.Target.V),
			cmp.Compare(a.port.Published.V, b.port.Published.V), cmp.Compare(a.port.Host.V, b.port.Host.V))
	})
	for i, e := range all {
		listen := uint16(firewall.FirstPublish + i)
		host := e.port.Host.V
		if host == "" {
			host = "127.0.0.1" // B10
		}
		published := strconv.Itoa(int(e.port.Published.V))
		s.Ports = append(s.Ports, types.ServicePortConfig{
			Mode: "ingress", HostIP: host, Published: published, Target: uint32(listen), Protocol: "tcp",
		})
		p.Publish = append(p.Publish, firewall.Publish{
			Room: c.out.RoomOf[e.worker], Listen: listen, Target: e.port.Target.V, Worker: e.worker,
		})
		src := e.port.At
		src.Template = ""
		if e.port.Host.Source.Template != "" || e.port.Published.Source.Template != "" {
			src.Template = hostPart(host, e.port.Host.Source) + ":" + templateOf(published, e.port.Published.Source) +
				":" + strconv.Itoa(int(listen)) + "/tcp"
		}
		c.origin(s.Name, "ports."+strconv.Itoa(int(listen)), src)
	}
}

// hostPart is the address of a published port in the short form.
func hostPart(host string, src diag.Source) string {
	if src.Template == "" && strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return templateOf(host, src)
}

// Publisher is the worker that publishes a port of the host; empty if none
// does.
func (c *Compiled) Publisher(port string) string {
	for _, service := range sortedKeys(c.workers) {
		for _, p := range c.workers[service].Container.Ports {
			if strconv.Itoa(int(p.Published.V)) == port {
				return service
			}
		}
	}
	return ""
}
