package room

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/room/handover"
)

// anyIP is a room without netfilter: every address is local to its loopback
// (docs/decisions/anyip.md). The kernel refuses ports that nobody listens on.
type anyIP struct {
	listeners map[uint16]int          // of the policy's ports
	counting  map[firewall.Family]int // packet sockets for counting only, never read

	mu   sync.Mutex
	seen map[firewall.Family]uint64 // by the counting sockets
}

// newAnyIP makes a room of this kind; lack is what netfilter lacks.
func newAnyIP(o Options, fs families, v6Routes bool, lack error) (_ *Room, err error) {
	switch {
	case o.Open:
		return nil, fmt.Errorf("%w; `open` always needs it, as only netfilter can redirect all ports to the guard", lack)
	case len(o.Packets) < 2*len(fs):
		return nil, fmt.Errorf("%w; without it refused packets are counted by packet sockets (B28), which the room did not get", lack)
	}
	r := &Room{o: o, families: fs, any: &anyIP{listeners: map[uint16]int{}, counting: map[firewall.Family]int{}, seen: map[firewall.Family]uint64{}}}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if r.fds, err = openAnyIPSockets(fs); err != nil {
		return nil, err
	}
	for i, f := range fs {
		shown, counting := o.Packets[2*i], o.Packets[2*i+1]
		if err := errors.Join(watch(shown, f), watch(counting, f)); err != nil {
			return nil, err
		}
		_ = unix.SetsockoptInt(shown, unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<20)
		// The kernel rounds up to its minimum: nobody reads the socket, and packets
		// that don't fit are counted too.
		_ = unix.SetsockoptInt(counting, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
		r.any.counting[f] = counting
		r.fds = append(r.fds, shown)
	}
	closeFDs(o.Packets[2*len(fs):])
	// A ping of any address would be answered locally, so nobody may send one. That
	// is the default of a new namespace, should writing fail.
	_ = os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("1 0"), 0)
	// Listeners and counters before routes: without routes no packet is sent.
	if err := routes(fs, v6Routes, localRoute); err != nil {
		return nil, err
	}
	return r, nil
}

// localRoute makes every address local to loopback. In a table other than local, IPv4
// connections would hang; without the preferred source, their source would be the
// dialled address. Multicast, which would be dropped silently, is refused (EACCES).
func localRoute(f firewall.Family) error {
	if err := refuseMulticast(f); err != nil {
		return err
	}
	src := netip.MustParseAddr("127.0.0.1")
	header := unix.RtMsg{Family: unix.AF_INET, Table: unix.RT_TABLE_LOCAL, Protocol: unix.RTPROT_STATIC, Scope: unix.RT_SCOPE_HOST, Type: unix.RTN_LOCAL}
	if f == firewall.V6 {
		src, header.Family, header.Scope = netip.IPv6Loopback(), unix.AF_INET6, unix.RT_SCOPE_UNIVERSE
	}
	return routeRequest(fmt.Sprintf("IPv%d local route", f), unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, header, func(e *netlink.AttributeEncoder) {
		e.Uint32(unix.RTA_OIF, loopbackIndex)
		e.Bytes(unix.RTA_PREFSRC, src.AsSlice())
	})
}

// LocalAddresses makes every IPv4 address one of the network namespace's own: what package
// relay needs, in a kernel that no room is in.
func LocalAddresses() error {
	if err := setLoopbackUp(); err != nil {
		return err
	}
	return localRoute(firewall.V4)
}

func refuseMulticast(f firewall.Family) error {
	to := []string{"224.0.0.0/4", "255.255.255.255/32"}
	header := unix.RtMsg{Family: unix.AF_INET, Table: unix.RT_TABLE_LOCAL, Protocol: unix.RTPROT_STATIC, Scope: unix.RT_SCOPE_UNIVERSE, Type: unix.RTN_PROHIBIT}
	if f == firewall.V6 {
		to, header.Family = []string{"ff00::/8"}, unix.AF_INET6
	}
	for _, s := range to {
		p := netip.MustParsePrefix(s)
		header.Dst_len = uint8(p.Bits())
		if err := routeRequest("route of "+s, unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, header, func(e *netlink.AttributeEncoder) {
			e.Bytes(unix.RTA_DST, p.Addr().AsSlice())
		}); err != nil {
			return err
		}
	}
	return nil
}

// openAnyIPSockets opens the sockets to hand over except the packet sockets, in the
// order of handover.Sockets.
func openAnyIPSockets(fs families) (fds []int, err error) {
	open := func(make func() (int, error)) {
		if err != nil {
			return
		}
		var fd int
		if fd, err = make(); err == nil {
			fds = append(fds, fd)
		}
	}
	open(func() (int, error) { return dnsSocket(fs) })
	for _, port := range []uint16{53, 80, 443, firewall.PortProxy} {
		open(func() (int, error) { return listener(fs, unix.SOCK_STREAM, port) })
	}
	return fds, err
}

// dnsSocket returns the socket for questions over UDP. It reports the destination
// address of each, and may send the answer from it: for an IPv6 address that no
// interface has this needs IPV6_FREEBIND.
func dnsSocket(fs families) (int, error) {
	fd, err := listener(fs, unix.SOCK_DGRAM, 53)
	if err != nil {
		return -1, err
	}
	if len(fs) > 1 {
		err = errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1), unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1))
	} else {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("DNS socket: %w", err)
	}
	return fd, nil
}

// open replaces the listeners by those of ports. A port in use by a worker's program
// stays closed, and the response says who has it.
func (a *anyIP) open(fs families, ports []firewall.PortRange) (o handover.Opened) {
	// The guard itself serves other connections to its proxy's port.
	ports = firewall.SubtractPorts(ports, []firewall.PortRange{{First: firewall.PortProxy, Last: firewall.PortProxy}})
	n := 0
	for _, p := range ports {
		n += int(p.Last-p.First) + 1
	}
	for port, fd := range a.listeners {
		if !slices.ContainsFunc(ports, func(p firewall.PortRange) bool { return p.First <= port && port <= p.Last }) {
			unix.Close(fd)
			delete(a.listeners, port)
		}
	}
	if n > handover.MaxListeners {
		for _, port := range slices.Sorted(maps.Keys(a.listeners)) {
			o.Ports, o.FDs = append(o.Ports, port), append(o.FDs, a.listeners[port])
		}
		o.Taken = fmt.Sprintf("there are %d ports besides 80 and 443, but without nf_tables a room can open %d: no new one is open; allow fewer, or `sudo modprobe -a nf_tables nft_compat`", n, handover.MaxListeners)
		return o
	}
	var taken []string
	for _, p := range ports {
		for i := int(p.First); i <= int(p.Last); i++ {
			port := uint16(i)
			fd, ok := a.listeners[port]
			if !ok {
				var err error
				if fd, err = listener(fs, unix.SOCK_STREAM, port); errors.Is(err, unix.EADDRINUSE) {
					taken = append(taken, whoHas(port))
					continue
				} else if err != nil {
					taken = append(taken, err.Error())
					continue
				}
				a.listeners[port] = fd
			}
			o.Ports, o.FDs = append(o.Ports, port), append(o.FDs, fd)
		}
	}
	const most = 8 // listed by name
	if more := len(taken) - most; more > 0 {
		taken = append(taken[:most], fmt.Sprintf("and %d more ports", more))
	}
	if o.Taken = strings.Join(taken, ", "); o.Taken != "" {
		o.Taken += ": end the program, and allow it again"
	}
	return o
}

// counters returns the kernel's counts of packets that match the filters.
func (a *anyIP) counters() (c handover.Counters, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.Kind = handover.AnyIP
	for f, fd := range a.counting {
		n, err := received(fd)
		if err != nil {
			return c, fmt.Errorf("counters: %w", err)
		}
		a.seen[f] += n
		c.Set(f, a.seen[f])
	}
	return c, nil
}

func (a *anyIP) close() {
	for _, fd := range a.listeners {
		unix.Close(fd)
	}
	for _, fd := range a.counting {
		unix.Close(fd)
	}
	a.listeners, a.counting = nil, nil
}
