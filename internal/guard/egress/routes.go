package egress

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// routes is what the routing tables say about nearby addresses.
type routes struct {
	gateways map[netip.Addr]bool
	local    []netip.Prefix // addresses of the machine itself, whatever interface has them
	links    []netip.Prefix // neighbours
}

// broadest is the shortest prefix that counts as one of neighbours: routes of half
// the internet through a tunnel don't.
const broadest = 8

// readRoutes reads them by rtnetlink(7), which needs neither a capability nor
// /proc.
func readRoutes() (r routes, err error) {
	rib, err := syscall.NetlinkRIB(unix.RTM_GETROUTE, unix.AF_UNSPEC)
	if err != nil {
		return r, err
	}
	msgs, err := syscall.ParseNetlinkMessage(rib)
	if err != nil {
		return r, err
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return r, err
	}
	broadcast := map[uint32]bool{}
	for _, i := range interfaces {
		broadcast[uint32(i.Index)] = i.Flags&net.FlagBroadcast != 0
	}
	r.gateways = map[netip.Addr]bool{}
	for i := range msgs {
		if msgs[i].Header.Type != unix.RTM_NEWROUTE || len(msgs[i].Data) < unix.SizeofRtMsg {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&msgs[i])
		if err != nil {
			return r, err
		}
		r.add((*unix.RtMsg)(unsafe.Pointer(&msgs[i].Data[0])), attrs, broadcast)
	}
	return r, nil
}

// add adds one route; broadcast lists the interfaces whose neighbours are resolved
// by address, unlike tunnels.
func (r *routes) add(m *unix.RtMsg, attrs []syscall.NetlinkRouteAttr, broadcast map[uint32]bool) {
	var to netip.Addr
	var device uint32
	direct := true
	for _, a := range attrs {
		switch a.Attr.Type {
		case unix.RTA_DST:
			to, _ = netip.AddrFromSlice(a.Value)
		case unix.RTA_OIF:
			if len(a.Value) >= 4 {
				device = binary.NativeEndian.Uint32(a.Value)
			}
		case unix.RTA_GATEWAY:
			addGateway(r.gateways, a.Value)
			direct = false
		case unix.RTA_VIA: // struct rtvia: family, address
			if len(a.Value) > 2 {
				addGateway(r.gateways, a.Value[2:])
			}
			direct = false
		case unix.RTA_MULTIPATH:
			addNextHops(r.gateways, a.Value)
			direct = false
		}
	}
	if !to.IsValid() || to.IsLinkLocalUnicast() {
		return
	}
	p := netip.PrefixFrom(to, int(m.Dst_len)).Masked()
	switch {
	case m.Type == unix.RTN_LOCAL, m.Type == unix.RTN_ANYCAST:
		r.local = append(r.local, p)
	// The kernel's own routes are those of addresses and their peers; routes of
	// others lead to neighbours unless they go through a tunnel.
	case m.Type == unix.RTN_UNICAST && direct && p.Bits() >= broadest && (m.Protocol == unix.RTPROT_KERNEL || broadcast[device]):
		r.links = append(r.links, p)
	}
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
