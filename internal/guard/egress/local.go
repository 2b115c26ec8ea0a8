package egress

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Place is where an address lies, seen from the guard.
type Place int

// The places. Far is everything that isn't near.
const (
	Far     Place = iota
	Own           // an address of the guard's own network namespace
	Gateway       // a router: with Docker, the host
	OnLink        // in the prefix of an interface: with Docker, another container
)

// Local knows the addresses of the guard's own network namespace. They may
// change (an engine can attach networks), so they are read again when older
// than maxAge.
type Local struct {
	// Host are further addresses of the host; they count as gateways.
	Host []netip.Addr

	mu       sync.Mutex
	at       time.Time
	own      map[netip.Addr]bool
	gateways map[netip.Addr]bool
	links    []netip.Prefix
	ipv6     bool
}

const maxAge = time.Second

// Place tells where an address lies. An error means that the guard doesn't know
// its own addresses; nothing may be dialled then.
func (l *Local) Place(a netip.Addr) (Place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return Own, err
	}
	a = a.Unmap()
	switch {
	case l.own[a]:
		return Own, nil
	case l.gateways[a], slices.Contains(l.Host, a):
		return Gateway, nil
	}
	for _, p := range l.links {
		if p.Contains(a) {
			return OnLink, nil
		}
	}
	return Far, nil
}

// IPv6 tells whether the guard has an IPv6 address that isn't link-local.
func (l *Local) IPv6() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh() == nil && l.ipv6
}

func (l *Local) refresh() error {
	now := time.Now()
	if l.own != nil && now.Sub(l.at) < maxAge {
		return nil
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("own addresses: %w", err)
	}
	gateways, err := readGateways()
	if err != nil {
		return fmt.Errorf("own routes: %w", err)
	}
	l.own, l.gateways, l.links, l.ipv6, l.at = map[netip.Addr]bool{}, gateways, nil, false, now
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if !ok {
			continue
		}
		ip = ip.Unmap()
		bits, _ := n.Mask.Size()
		l.own[ip] = true
		if ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		l.links = append(l.links, netip.PrefixFrom(ip, bits).Masked())
		l.ipv6 = l.ipv6 || ip.Is6()
	}
	return nil
}

// readGateways returns the gateways of all routes, by rtnetlink(7), which needs
// neither a capability nor /proc.
func readGateways() (map[netip.Addr]bool, error) {
	rib, err := syscall.NetlinkRIB(unix.RTM_GETROUTE, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	msgs, err := syscall.ParseNetlinkMessage(rib)
	if err != nil {
		return nil, err
	}
	out := map[netip.Addr]bool{}
	for i := range msgs {
		if msgs[i].Header.Type != unix.RTM_NEWROUTE {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&msgs[i])
		if err != nil {
			return nil, err
		}
		for _, a := range attrs {
			switch a.Attr.Type {
			case unix.RTA_GATEWAY:
				addGateway(out, a.Value)
			case unix.RTA_VIA: // struct rtvia: family, address
				if len(a.Value) > 2 {
					addGateway(out, a.Value[2:])
				}
			case unix.RTA_MULTIPATH:
				addNextHops(out, a.Value)
			}
		}
	}
	return out, nil
}

// addNextHops reads a list of struct rtnexthop (rtnetlink(7)), each with
// attributes of its own.
func addNextHops(out map[netip.Addr]bool, b []byte) {
	const header = unix.SizeofRtNexthop
	for len(b) >= header {
		n := int(binary.NativeEndian.Uint16(b))
		if n < header || n > len(b) {
			return
		}
		for attrs := b[header:n]; len(attrs) >= unix.SizeofRtAttr; {
			size, kind := int(binary.NativeEndian.Uint16(attrs)), binary.NativeEndian.Uint16(attrs[2:])
			if size < unix.SizeofRtAttr || size > len(attrs) {
				break
			}
			if kind == unix.RTA_GATEWAY {
				addGateway(out, attrs[unix.SizeofRtAttr:size])
			}
			attrs = attrs[min(len(attrs), (size+3)&^3):]
		}
		b = b[min(len(b), (n+3)&^3):]
	}
}

func addGateway(out map[netip.Addr]bool, b []byte) {
	if a, ok := netip.AddrFromSlice(b); ok {
		out[a.Unmap()] = true
	}
}
