package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/hostfirewall"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// machinesResolv is the file that Docker reads where resolv.conf leads to the machine's own
// resolver of systemd, which containers don't reach (moby: resolvconf.Path).
const machinesResolv = "/run/systemd/resolve/resolv.conf"

// upstreams are the servers that the guard itself connects to.
func (g *hostGuard) upstreams(ctx context.Context, bridged bool) (out []hostfirewall.Opening, err error) {
	project := g.v.engine.Name
	resolvers := false
	for _, u := range g.v.State.Upstreams {
		host, port, err := net.SplitHostPort(u.Address)
		n, bad := strconv.ParseUint(port, 10, 16)
		if err != nil || bad != nil {
			return nil, Fail(CodeFailed, "the guard of project %s names an upstream %s", project, Printable(u.Address))
		}
		resolvers = resolvers || u.Kind == "resolver"
		addrs, err := addressesOf(ctx, host)
		if err != nil {
			return nil, Fail(CodeFailed, "the upstream proxy of project %s: %w", project, err).Hint("name it by its address, or see why: `getent hosts %s`", Printable(host))
		}
		for _, a := range addrs {
			out = appendOpening(out, opensAddress(a, uint16(n), u.Kind == "resolver", "the "+u.Kind+" of project "+project))
		}
	}
	if resolvers {
		return out, nil
	}
	list := g.o.Resolvers
	if len(list) == 0 || !bridged {
		list = g.machineResolvers(bridged)
	}
	if len(list) == 0 && bridged {
		return nil, Fail(CodeRefused, "project %s: which resolvers the engine uses isn't known, as %s names none that a container reaches", project, g.resolvConf()).
			Hint("name them with `--resolver ADDRESS`, or in workshop.yaml with `dns:`")
	}
	for _, a := range list {
		out = appendOpening(out, opensAddress(a, 53, true, "a resolver of this machine"))
	}
	return out, nil
}

// machineResolvers are those of this machine; bridged: those that containers ask.
func (g *hostGuard) machineResolvers(bridged bool) (out []netip.Addr) {
	read := func(file string) {
		text, err := boundedfile.Read(file, 1<<20)
		if err != nil {
			return
		}
		for _, r := range doctor.Resolvers(string(text)) {
			if a := r.Addr().Unmap(); !bridged || !a.IsLoopback() {
				out = append(out, a.WithZone(""))
			}
		}
	}
	if read(g.resolvConf()); len(out) == 0 && bridged {
		read(machinesResolv)
	}
	return out
}

func addressesOf(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range all {
		all[i] = all[i].Unmap()
	}
	return all, err
}

func opensAddress(a netip.Addr, port uint16, udp bool, why string) hostfirewall.Opening {
	return hostfirewall.Opening{To: netip.PrefixFrom(a, a.BitLen()), Ports: []firewall.PortRange{{First: port, Last: port}}, UDP: udp, Why: why}
}

// lines are what lines of the file open of closed ranges: ranges as they are written, and
// what names lead to now.
func (g *hostGuard) lines(ctx context.Context) (out []hostfirewall.Opening, err error) {
	err = g.withGuard(ctx, g.v.engine, func(c *control.Client) error {
		for _, room := range g.v.file {
			for i := range room.Allow {
				if out, err = g.line(c, room.Room, &room.Allow[i], out); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return out, err
}

func (g *hostGuard) line(c *control.Client, room string, r *firewall.Rule, out []hostfirewall.Opening) ([]hostfirewall.Opening, error) {
	why := fmt.Sprintf("project %s, %s: %s", g.v.engine.Name, r.Line, r.Target())
	switch {
	case r.CIDR.IsValid():
		return appendOpening(out, hostfirewall.Opening{To: r.CIDR, Ports: r.Ports, Why: why}), nil
	case !r.Private:
		return out, nil
	case r.Host.IsWildcard(): // any name, and with it any address
		for _, x := range firewall.ClassRanges() {
			if x.Class.OpenedBy(r) {
				out = appendOpening(out, hostfirewall.Opening{To: x.Prefix, Ports: r.Ports, Named: true, Why: why})
			}
		}
		return out, nil
	}
	var now control.Explanation
	if err := c.Do(control.Request{Op: control.OpExplain, Room: room, Host: r.Host.String(), Port: r.Ports[0].First}, &now); err != nil {
		return nil, err
	}
	found := false
	for _, x := range now.Addresses {
		a, err := netip.ParseAddr(x.Address)
		if err != nil || !x.Allowed {
			continue
		}
		found = true
		a = a.Unmap()
		out = appendOpening(out, hostfirewall.Opening{To: netip.PrefixFrom(a, a.BitLen()), Ports: r.Ports, Named: true, Why: why})
	}
	if !found {
		g.notHeld("%s has no address now: a private one that it gets is refused", why)
	}
	return out, nil
}

// groupsOfGuards is the directory that the namespace engine makes its control groups in:
// no other program is in one of those.
const groupsOfGuards = "workshop"

// maxProc bounds a file of a process in /proc.
const maxProc = 1 << 20

// identify says by what the kernel knows a process from the user's other programs.
func identify(pid int, p *hostfirewall.Programs) error {
	if pid == 0 {
		return errors.New("its process isn't seen from here")
	}
	status, err := boundedfile.Read(fmt.Sprintf("/proc/%d/status", pid), maxProc)
	if err != nil {
		return err
	}
	uids := fieldsOf(string(status), "Uid:")
	if len(uids) < 4 {
		return fmt.Errorf("/proc/%d/status has no user", pid)
	}
	// The fourth is that of the file system, which a socket gets.
	if p.UID, err = strconv.Atoi(uids[3]); err != nil {
		return err
	}
	if p.UID != os.Getuid() && p.UID != 0 {
		return nil
	}
	p.UID = 0
	groups, err := boundedfile.Read(fmt.Sprintf("/proc/%d/cgroup", pid), maxProc)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(groups)) {
		at, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if parent := path.Dir(at); ok && path.Base(parent) == groupsOfGuards && hostfirewall.CanNameCgroup(parent) {
			// Its own group is another one after each restart.
			p.Cgroup = parent
			return nil
		}
	}
	return errors.New("it has your user and no control group (version 2) of its own, so the kernel can't tell it from your other programs")
}

// fieldsOf are the words of a line of /proc after its name.
func fieldsOf(text, name string) []string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}
