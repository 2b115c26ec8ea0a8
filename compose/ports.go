package compose

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
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
	sortfunc.Stable(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.worker, b.worker), cmp.Compare(a.port.Target.V, b.port.Target.V),
			cmp.Compare(a.port.Published.V, b.port.Published.V), cmp.Compare(a.port.Host.V, b.port.Host.V))
	})
	for i, e := range all {
		listen := uint16(firewall.FirstPublish + i)
		host := e.port.Host.V
		if host == "" {
			host = "127.0.0.1" // B10
		}
		published := numberText(e.port.Published.V)
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

// numberText is a port of the host as Compose has it; empty: any, which Compose takes
// from the ephemeral ones at each start.
func numberText(port uint16) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(int(port))
}

// PortKey is a port of a worker.
type PortKey struct {
	Worker string
	Target uint16
}

// AutoPorts are the ports of workers whose port of the host the file leaves open, in
// the order of workers and targets.
func (c *Compiled) AutoPorts() []PortKey {
	var all []PortKey
	for _, name := range sortedKeys(c.workers) {
		for _, p := range c.workers[name].Container.Ports {
			if p.Auto() && c.RoomOf[name] != "" {
				all = append(all, PortKey{name, p.Target.V})
			}
		}
	}
	sortfunc.Stable(all, func(a, b PortKey) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Target, b.Target))
	})
	return all
}

// Port is a worker's port of the workshop; nil if the worker has none of that target.
func (c *Compiled) Port(k PortKey) *workshop.Port {
	if w := c.definition(k.Worker); w != nil {
		for i := range w.Container.Ports {
			if w.Container.Ports[i].Target.V == k.Target {
				return &w.Container.Ports[i]
			}
		}
	}
	return nil
}

// Published is the port of the host at which a worker's port is published: that of the
// file, or that of the machine (Facts.Ports). 0: it is not known.
func (c *Compiled) Published(k PortKey) uint16 {
	switch p := c.Port(k); {
	case p == nil:
		return 0
	case p.Auto() && c.Facts != nil:
		return c.Facts.Ports[k]
	default:
		return p.Published.V
	}
}

// Publisher is the worker that publishes a port of the host; empty if none
// does.
func (c *Compiled) Publisher(port string) string { return c.PublisherOf(port).Worker }

// PublisherOf is the port of a worker that is published as a port of the host; zero if
// none is.
func (c *Compiled) PublisherOf(port string) PortKey {
	for _, service := range sortedKeys(c.workers) {
		for _, p := range c.workers[service].Container.Ports {
			k := PortKey{service, p.Target.V}
			if n := c.Published(k); n != 0 && numberText(n) == port {
				return k
			}
		}
	}
	return PortKey{}
}

// givePorts puts the machine's numbers into the ports of the guard that the file leaves
// open.
func (m *machine) givePorts(s *types.ServiceConfig) {
	if m.c.Policy == nil || len(m.f.Ports) == 0 {
		return
	}
	s.Ports = slices.Clone(s.Ports)
	for i := range s.Ports {
		p := &s.Ports[i]
		for _, by := range m.c.Policy.Publish {
			if p.Published == "" && uint32(by.Listen) == p.Target {
				p.Published = numberText(m.f.Ports[PortKey{by.Worker, by.Target}])
			}
		}
	}
}
