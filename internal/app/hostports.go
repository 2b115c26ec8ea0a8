package app

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/internal/ports"
	"github.com/llmdo/workshop/workshop"
)

// Ports are the numbers that this machine chose for a project's ports that the file
// leaves open (`published: auto`).
type Ports map[compose.PortKey]uint16

// Ports returns the leases of a project; those that can't be read are none: whoever
// needs one says what is wrong.
func (env *Env) Ports(t ProjectRef) Ports {
	all, _ := env.leases().Leases()
	out := Ports{}
	for _, l := range all {
		if l.Dir == t.Dir && l.Project == t.Name {
			out[compose.PortKey{Worker: l.Worker, Target: l.Target}] = l.Port
		}
	}
	return out
}

// Text is [PortText] of a worker's port.
func (p Ports) Text(worker string, port workshop.Port) string {
	n := port.Published.V
	if port.Auto() {
		n = p[compose.PortKey{Worker: worker, Target: port.Target.V}]
	}
	return grant.PortText(port, n)
}

func (env *Env) leases() ports.Registry { return ports.In(env.StateDir()) }

// portKeys are the keys of a project's open ports.
func portKeys(c *Project) (keys []ports.Key) {
	for _, k := range c.Compiled.AutoPorts() {
		keys = append(keys, ports.Key{Dir: c.Dir, Project: c.Name, Worker: k.Worker, Target: k.Target})
	}
	return keys
}

// maxOpenPorts bounds the ports of one workshop that are leased: there are 4,000 for all
// of a user's.
const maxOpenPorts = 256

func checkOpenPorts(keys []ports.Key) error {
	if len(keys) > maxOpenPorts {
		return Fail(CodeRefused, "%d ports are left open (`published: auto`), more than %d of one workshop", len(keys), maxOpenPorts).
			Hint("write numbers out, as in `\"8080:8080\"`")
	}
	return nil
}

// portsOf returns the numbers of a project's open ports: those that were leased, or what
// a lease would be now. It changes nothing.
func (env *Env) portsOf(e engine.Engine, c *Project) (map[compose.PortKey]uint16, error) {
	keys := portKeys(c)
	if c.ports != nil || len(keys) == 0 || !e.Capabilities().Contained {
		return c.ports, nil
	}
	if err := checkOpenPorts(keys); err != nil {
		return nil, err
	}
	all, err := env.leases().Leases()
	if err != nil {
		return nil, Fail(CodeFailed, "%w", err)
	}
	_, numbers, err := ports.With(all, keys, isFree(c), nil)
	return byPort(numbers), failed(err)
}

// leasePorts leases numbers for a project's open ports, so that no other command takes
// them.
func (ch *Change) leasePorts(ctx context.Context, e engine.Engine, c *Project) (map[compose.PortKey]uint16, error) {
	keys := portKeys(c)
	if len(keys) == 0 || !e.Capabilities().Contained {
		return nil, nil
	}
	if ch.env.StateDir() == "" {
		return nil, Fail(CodeFailed, "no directory to keep the number of an open port in: neither HOME nor XDG_STATE_HOME is set").
			Hint("write the number out in workshop.yaml, as in `\"8080:8080\"`")
	}
	seen, err := e.Observe(ctx, c.Name)
	if err != nil {
		return nil, EngineError(err)
	}
	var numbers map[ports.Key]uint16
	err = ch.env.leases().Change(ctx, func(all []ports.Lease) ([]ports.Lease, error) {
		all, numbers, err = ports.With(all, keys, isFree(c), func(n uint16) bool { return seen.Publishes(strconv.Itoa(int(n))) })
		return all, err
	})
	return byPort(numbers), failed(err)
}

// keepPorts notes that a project came up with its numbers: from now on they are never
// exchanged.
func (env *Env) keepPorts(ctx context.Context, ready *Project) {
	if len(ready.Compiled.Facts.Ports) == 0 {
		return
	}
	err := env.leases().Change(ctx, func(all []ports.Lease) ([]ports.Lease, error) {
		return ports.Use(all, ready.Dir, ready.Name, portKeys(ready)), nil
	})
	if err != nil {
		env.warn("the next `up` may choose other ports: %v", err)
	}
}

// forgetPorts gives up the leases of a project.
func (env *Env) forgetPorts(ctx context.Context, t ProjectRef) error {
	all, err := env.leases().Leases()
	of := func(l ports.Lease) bool { return l.Dir == t.Dir && l.Project == t.Name }
	if err != nil || !slices.ContainsFunc(all, of) {
		return err
	}
	return env.leases().Change(ctx, func(all []ports.Lease) ([]ports.Lease, error) { return slices.DeleteFunc(all, of), nil })
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return Fail(CodeFailed, "%w", err)
}

func byPort(numbers map[ports.Key]uint16) map[compose.PortKey]uint16 {
	out := make(map[compose.PortKey]uint16, len(numbers))
	for k, n := range numbers {
		out[compose.PortKey{Worker: k.Worker, Target: k.Target}] = n
	}
	return out
}

// isFree returns a check of whether a number can be given to a worker: the file gives it to no
// other port, and nothing listens on it.
func isFree(c *Project) ports.Free {
	fixed := map[uint16]bool{}
	for i := range c.Workshop.Workers {
		for _, p := range c.Workshop.Workers[i].Container.Ports {
			fixed[p.Published.V] = true
		}
	}
	return func(k ports.Key, n uint16) bool {
		if fixed[n] {
			return false
		}
		p := c.Compiled.Port(compose.PortKey{Worker: k.Worker, Target: k.Target})
		return p == nil || canListen(net.JoinHostPort(p.Host.V, strconv.Itoa(int(n))))
	}
}

// canListen reports whether no program of this machine listens on an address. One that
// isn't of this machine is for the start to find out about.
func canListen(address string) bool {
	network := "tcp4"
	if strings.HasPrefix(address, "[") {
		network = "tcp6"
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return !errors.Is(err, syscall.EADDRINUSE)
	}
	return l.Close() == nil
}
