package testnet

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The link between the two namespaces. 198.18.0.0/15 is the range for
// benchmarking of network devices (RFC 2544), so it collides with nothing real.
const (
	linkPrefix = "wstn"
	nearAddr4  = "198.18.0.1/30"
	farAddr4   = "198.18.0.2/30"
	nearAddr6  = "2001:db8:ffff::1/64"
	farAddr6   = "2001:db8:ffff::2/64"
)

// Range4 and Range6 are the addresses of the test internet.
var (
	Range4 = netip.MustParsePrefix("198.51.100.0/24")
	Range6 = netip.MustParsePrefix("2001:db8:1::/48")
)

// join connects near (where the tests are) with far (the internet) and returns
// whether IPv6 works, and how to take the link away again.
func join(near, far *NS) (ipv6 bool, remove func(), err error) {
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return false, nil, err
	}
	name := linkPrefix + hex.EncodeToString(id[:])
	err = near.Do(func() error {
		dropStaleLinks()
		la := netlink.NewLinkAttrs()
		la.Name = name
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: la, PeerName: "eth0", PeerNamespace: netlink.NsFd(far.Fd()),
		})
	})
	if err != nil {
		return false, nil, fmt.Errorf("veth: %w", err)
	}
	remove = func() {
		_ = near.Do(func() error {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			return netlink.LinkDel(l)
		})
	}
	var near6, far6 bool
	err = far.Do(func() (err error) { far6, err = configureFar(); return err })
	if err == nil {
		err = near.Do(func() (err error) { near6, err = configureNear(name); return err })
	}
	if err != nil {
		remove()
		return false, nil, err
	}
	return near6 && far6, remove, nil
}

// dropStaleLinks removes links of an earlier test internet that was killed: the
// kernel takes a moment to dissolve its namespace.
func dropStaleLinks() {
	links, err := netlink.LinkList()
	if err != nil {
		return
	}
	for _, l := range links {
		if strings.HasPrefix(l.Attrs().Name, linkPrefix) {
			_ = netlink.LinkDel(l)
		}
	}
}

func configureFar() (ipv6 bool, err error) {
	link, ipv6, err := configureLink("eth0", farAddr4, farAddr6)
	if err != nil {
		return false, err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return false, err
	}
	// A local route makes every address of the range the namespace's own.
	routes := []netlink.Route{
		{Dst: ipNet(Range4), LinkIndex: lo.Attrs().Index, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST},
		{Gw: host(nearAddr4), LinkIndex: link.Attrs().Index},
	}
	if ipv6 {
		routes = append(routes,
			netlink.Route{Dst: ipNet(Range6), LinkIndex: lo.Attrs().Index, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL},
			netlink.Route{Gw: host(nearAddr6), LinkIndex: link.Attrs().Index})
	}
	return ipv6, addRoutes(routes)
}

func configureNear(name string) (ipv6 bool, err error) {
	link, ipv6, err := configureLink(name, nearAddr4, nearAddr6)
	if err != nil {
		return false, err
	}
	routes := []netlink.Route{{Dst: ipNet(Range4), Gw: host(farAddr4), LinkIndex: link.Attrs().Index}}
	if ipv6 {
		routes = append(routes, netlink.Route{Dst: ipNet(Range6), Gw: host(farAddr6), LinkIndex: link.Attrs().Index})
	}
	return ipv6, addRoutes(routes)
}

// configureLink gives the link its addresses; a kernel without IPv6 (or with it
// switched off) is no error.
func configureLink(name, addr4, addr6 string) (link netlink.Link, ipv6 bool, err error) {
	if link, err = netlink.LinkByName(name); err != nil {
		return nil, false, err
	}
	if err = addAddr(link, addr4); err != nil {
		return nil, false, err
	}
	switch err = addAddr(link, addr6); {
	case err == nil:
		ipv6 = true
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAFNOSUPPORT):
	default:
		return nil, false, err
	}
	return link, ipv6, netlink.LinkSetUp(link)
}

func addAddr(link netlink.Link, cidr string) error {
	a, err := netlink.ParseAddr(cidr)
	if err != nil {
		return err
	}
	a.Flags = unix.IFA_F_NODAD // usable at once, there is nobody to collide with
	if err := netlink.AddrAdd(link, a); err != nil {
		return fmt.Errorf("address %s: %w", cidr, err)
	}
	return nil
}

func addRoutes(routes []netlink.Route) error {
	for _, r := range routes {
		if err := netlink.RouteReplace(&r); err != nil {
			return fmt.Errorf("route %s: %w", r, err)
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func host(cidr string) net.IP { return netip.MustParsePrefix(cidr).Addr().AsSlice() }
