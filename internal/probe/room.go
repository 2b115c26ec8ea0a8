//go:build linux

package probe

import (
	"net"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func interfaces(args) (string, string) {
	all, err := net.Interfaces()
	if err != nil {
		return seenOf(err)
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ","), ""
}

func addresses(args) (string, string) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return seenOf(err)
	}
	var out []string
	for _, a := range all {
		out = append(out, a.String())
	}
	slices.Sort(out)
	return strings.Join(out, ","), ""
}

func route(a args) (string, string) {
	l, err := netlink.LinkByName(a.opt("dev", "lo"))
	if err != nil {
		return seenOf(err)
	}
	r := &netlink.Route{LinkIndex: l.Attrs().Index}
	if a.pos[1] != "default" {
		if _, r.Dst, err = net.ParseCIDR(a.pos[1]); err != nil {
			return "ERROR", err.Error()
		}
	} else {
		r.Dst = &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	}
	if via := a.opt("via", ""); via != "" {
		r.Gw = net.ParseIP(via)
	}
	if a.pos[0] == "del" {
		return seenOf(netlink.RouteDel(r))
	}
	return seenOf(netlink.RouteAdd(r))
}

func link(a args) (string, string) {
	if a.pos[0] == "add" {
		return seenOf(netlink.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: a.pos[1]}}))
	}
	l, err := netlink.LinkByName(a.pos[1])
	if err != nil {
		return seenOf(err)
	}
	switch a.pos[0] {
	case "del":
		return seenOf(netlink.LinkDel(l))
	case "down":
		return seenOf(netlink.LinkSetDown(l))
	default:
		return seenOf(netlink.LinkSetUp(l))
	}
}

func address(a args) (string, string) {
	l, err := netlink.LinkByName(a.opt("dev", "lo"))
	if err != nil {
		return seenOf(err)
	}
	addr, err := netlink.ParseAddr(a.pos[1])
	if err != nil {
		return "ERROR", err.Error()
	}
	if a.pos[0] == "del" {
		return seenOf(netlink.AddrDel(l, addr))
	}
	return seenOf(netlink.AddrAdd(l, addr))
}

// rules changes netfilter by netlink, as nft(8) and iptables-nft(8) do.
func rules(a args) (string, string) {
	c, err := nftables.New()
	if err != nil {
		return seenOf(err)
	}
	if a.pos[0] == "flush" {
		c.FlushRuleset()
	} else {
		c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "probe"})
	}
	return seenOf(c.Flush())
}

// xtables opens what iptables-legacy(8) needs for every call.
func xtables(args) (string, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err == nil {
		unix.Close(fd)
	}
	return seenOf(err)
}
