package engine

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/llmdo/workshop/compose"
)

// checkPorts adds checks of published ports that no container of the project has
// yet. Like pulls and builds, they precede all changes.
func (pl *planner) checkPorts(decisions map[string]decision) {
	for _, service := range sortedKeys(decisions) {
		if a := decisions[service].action; a != create && a != start {
			continue
		}
		for _, p := range pl.p.Services[service].Ports {
			address := net.JoinHostPort(p.HostIP, p.Published)
			if pl.o.Publishes(p.Published) || p.Protocol != "" && p.Protocol != "tcp" {
				continue
			}
			pl.barrier = append(pl.barrier, pl.add(Step{Op: OpCheckPort, Target: "port/" + address, Key: address, Service: service, Cause: "not published yet"}))
		}
	}
}

// Publishes reports whether a container of the project publishes on a port.
func (o Observed) Publishes(port string) bool {
	return slices.ContainsFunc(o.Containers, func(c Container) bool {
		return slices.ContainsFunc(c.Ports, func(at string) bool { return strings.Contains(at, ":"+port+"->") })
	})
}

// portTime is how long a container that has just ended may take to release a
// port.
const portTime = time.Second

// CheckPort returns a [PortTakenError] if another program of this machine listens
// on the address, and a [ConflictError] if a container of the project now does. Any
// other problem is left to the start.
func CheckPort(ctx context.Context, e Engine, c *compose.Compiled, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil
	}
	network := "tcp6"
	if at.Addr().Unmap().Is4() {
		network = "tcp4"
	}
	for end := time.Now().Add(portTime); ; {
		l, err := net.ListenTCP(network, net.TCPAddrFromAddrPort(at))
		switch {
		case err == nil:
			return l.Close()
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil
		case time.Now().After(end) || ctx.Err() != nil:
			_, port, _ := net.SplitHostPort(address)
			if now, err := e.Observe(ctx, c.Project.Name); err == nil && now.Publishes(port) {
				return Conflict("port %s is published by the project itself", address)
			}
			return PortTaken(c, address, port, err)
		}
		time.Sleep(portTime / 10)
	}
}
