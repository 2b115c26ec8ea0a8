package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

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
		if t.leased(l) && !l.Reserved {
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
		return nil, registryError(err)
	}
	_, numbers, err := ports.With(all, keys, isFree(c), nil)
	return byPort(numbers), registryError(err)
}

// portLeases are what a project has of the registry with these numbers of its open ports:
// one lease for each port that it publishes. The number that isn't known is 0.
func portLeases(w *workshop.Workshop, t ProjectRef, numbers map[ports.Key]uint16) (all []ports.Lease) {
	for i := range w.Workers {
		for _, p := range w.Workers[i].Container.Ports {
			l := ports.Lease{
				Key:  ports.Key{Dir: t.Dir, Project: t.Name, Worker: w.Workers[i].Name, Target: p.Target.V},
				Port: p.Published.V, Host: p.Host.V, Reserved: !p.Auto(),
			}
			if p.Auto() {
				l.Port = numbers[l.Key]
			}
			all = append(all, l)
		}
	}
	return all
}

// leasePorts leases numbers for a project's open ports, so that no other command takes
// them, and notes those that its file reserves.
func (ch *Change) leasePorts(ctx context.Context, e engine.Engine, c *Project) (map[compose.PortKey]uint16, error) {
	keys, here := portKeys(c), publishesHere(ctx, e)
	if !e.Capabilities().Contained || len(keys) == 0 && (len(machinePorts(portLeases(c.Workshop, c.ProjectRef, nil), here)) == 0 || ch.env.StateDir() == "") {
		return nil, nil
	}
	if ch.env.StateDir() == "" {
		return nil, Fail(CodeFailed, "no directory to keep the number of an open port in: neither HOME nor XDG_STATE_HOME is set").
			Hint("write the number out in workshop.yaml, as in `\"8080:8080\"`")
	}
	var seen engine.Observed
	if len(keys) > 0 {
		var err error
		if seen, err = e.Observe(ctx, c.Name); err != nil {
			return nil, EngineError(err)
		}
	}
	var numbers map[ports.Key]uint16
	var shared []string
	err := ch.env.leases().Change(ctx, func(before []ports.Lease) (all []ports.Lease, err error) {
		all, numbers, err = ports.With(before, keys, isFree(c), func(n uint16) bool { return seen.Publishes(strconv.Itoa(int(n))) })
		if err != nil {
			return nil, err
		}
		want := machinePorts(portLeases(c.Workshop, c.ProjectRef, numbers), here)
		shared = newlyShared(before, want)
		all = ports.Note(all, want, time.Now())
		return all, ch.env.leasedTwice(all, want)
	})
	for _, text := range shared {
		ch.env.say("%s", text)
	}
	return byPort(numbers), registryError(err)
}

// publishesHere reports whether an engine publishes ports on this machine, in the network
// that this program sees.
func publishesHere(ctx context.Context, e engine.Engine) bool {
	if !e.Capabilities().Compose {
		return true // it is a part of this program
	}
	info, err := e.Info(ctx)
	return err == nil && (info.Local || runtime.GOOS != "linux" && info.Socket != "")
}

// machinePorts leaves out what has no number, and what a file reserves on another machine.
func machinePorts(all []ports.Lease, here bool) []ports.Lease {
	return slices.DeleteFunc(all, func(l ports.Lease) bool { return l.Port == 0 || l.Reserved && !here })
}

// newlyShared says which ports that a project reserves for the first time others reserve,
// too. It is said once: nobody needs it at each `up`.
func newlyShared(before, want []ports.Lease) (texts []string) {
	for _, l := range want {
		known := slices.ContainsFunc(before, func(b ports.Lease) bool { return b.Key == l.Key && b.Port == l.Port })
		if !l.Reserved || known {
			continue
		}
		for _, other := range ports.Others(before, l) {
			if other.Reserved {
				texts = append(texts, fmt.Sprintf("port %d of %s: project %s (%s) reserves it, too; only one of them can be up", l.Port, l.Worker, Printable(other.Project), Printable(other.Dir)))
			}
		}
	}
	return texts
}

// leasedTwice is a failure if a number that was chosen for a project is chosen for another
// one, too, as after an edit of the registry.
func (env *Env) leasedTwice(all, want []ports.Lease) error {
	for _, l := range want {
		for _, other := range ports.Others(all, l) {
			if !l.Reserved && !other.Reserved {
				return Fail(CodeRefused, "port %d is leased twice: to %s %d here, and to %s %d of project %s (%s)",
					l.Port, l.Worker, l.Target, Printable(other.Worker), other.Target, Printable(other.Project), Printable(other.Dir)).
					Hint("to have another one chosen by the next `up`: `workshop %sport --release %s %d`", env.ProjectFlags(), l.Worker, l.Target)
			}
		}
	}
	return nil
}

// keepPorts notes that a project came up with its numbers: from now on they are never
// exchanged.
func (env *Env) keepPorts(ctx context.Context, e engine.Engine, ready *Project) {
	numbers := make(map[ports.Key]uint16, len(ready.Compiled.Facts.Ports))
	for k, n := range ready.Compiled.Facts.Ports {
		numbers[ports.Key{Dir: ready.Dir, Project: ready.Name, Worker: k.Worker, Target: k.Target}] = n
	}
	want := machinePorts(portLeases(ready.Workshop, ready.ProjectRef, numbers), publishesHere(ctx, e))
	all, err := env.leases().Leases()
	if !e.Capabilities().Contained || env.StateDir() == "" || err == nil && len(want) == 0 && !slices.ContainsFunc(all, ready.leased) {
		return
	}
	if err == nil {
		err = env.leases().Change(ctx, func(all []ports.Lease) ([]ports.Lease, error) {
			return ports.Use(all, ready.Dir, ready.Name, want, time.Now()), nil
		})
	}
	if err != nil {
		env.warn("the next `up` may choose other ports: %v", err)
	}
}

// leased reports whether a lease is of the project.
func (t ProjectRef) leased(l ports.Lease) bool { return l.Dir == t.Dir && l.Project == t.Name }

// forgetPorts gives up the leases of a project.
func (env *Env) forgetPorts(ctx context.Context, t ProjectRef) error {
	all, err := env.leases().Leases()
	if err != nil || !slices.ContainsFunc(all, t.leased) {
		return err
	}
	return env.leases().Change(ctx, func(all []ports.Lease) ([]ports.Lease, error) { return slices.DeleteFunc(all, t.leased), nil })
}

// registryError is what went wrong with the leases, and what to do about it.
func registryError(err error) error {
	if _, said := errors.AsType[*Failure](err); err == nil || said {
		return err
	}
	f := Fail(CodeFailed, "%w", err)
	if file := registryFile(err); file != nil && !strings.Contains(err.Error(), "remove the file") {
		f.Hint("if it is yours: `%s`", file.Do)
	}
	return f
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
