package room

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// loopbackIndex is the index of lo in every network namespace
// (LOOPBACK_IFINDEX of include/net/flow.h).
const loopbackIndex = 1

// checkPorts refuses a namespace in which a worker could bind the guard's
// ports (B22). The sysctl belongs to the network namespace.
func checkPorts() error {
	const file = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("can't read who may bind ports below 1024: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 1024 {
		return fmt.Errorf("net.ipv4.ip_unprivileged_port_start is %s, so a worker could take the guard's ports: set the sysctl net.ipv4.ip_unprivileged_port_start=1024 on the room's container", strings.TrimSpace(string(b)))
	}
	return nil
}

// familiesHere returns the families for which sockets exist, and whether IPv6 addresses
// do: with disable_ipv6 there are sockets and rules but no routes.
func familiesHere() (fs families, v6Routes bool, err error) {
	fs = families{firewall.V4}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return fs, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("IPv6 socket: %w", err)
	}
	unix.Close(fd)
	fs = append(fs, firewall.V6)
	b, err := os.ReadFile("/proc/sys/net/ipv6/conf/lo/disable_ipv6")
	if err != nil {
		return nil, false, fmt.Errorf("can't check whether the namespace has IPv6: %w", err)
	}
	return fs, strings.TrimSpace(string(b)) == "0", nil
}

// checkLinks refuses a namespace with a way out (B20): an interface other than lo that
// is up. Fallback devices of tunnel modules (tunl0, sit0 …) appear in every namespace
// and are down; in a room only this program could change that.
func checkLinks() (loopbackUp bool, err error) {
	links, err := net.Interfaces()
	if err != nil {
		return false, fmt.Errorf("list interfaces: %w", err)
	}
	var others []string
	for _, l := range links {
		up := l.Flags&net.FlagUp != 0
		if l.Index == loopbackIndex {
			loopbackUp = up
		} else if up {
			others = append(others, l.Name)
		}
	}
	if len(others) > 0 {
		err = fmt.Errorf("the namespace has the interface %s; a room has lo only: give its container network_mode none", strings.Join(others, ", "))
	}
	return loopbackUp, err
}

func setLoopbackUp() error {
	header := unix.IfInfomsg{Index: loopbackIndex, Flags: unix.IFF_UP, Change: unix.IFF_UP}
	return routeRequest("set lo up", unix.RTM_NEWLINK, 0, header, nil)
}

// everyAddress are addresses of lo whose networks are all of IPv4; nobody dials them.
var everyAddress = []netip.Prefix{netip.MustParsePrefix("127.255.255.254/1"), netip.MustParsePrefix("240.0.0.1/1")}

// addEveryAddress gives lo the addresses for a sandbox with a network stack of its own that
// joins the namespace: runsc copies addresses of lo with their networks, and in its stack
// each address of such a network is a local one. Here they change nothing: without routes
// for the networks, all else is still routed by the default route, from 127.0.0.1.
func addEveryAddress() error {
	for _, a := range everyAddress {
		header := unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: uint8(a.Bits()), Scope: unix.RT_SCOPE_HOST, Index: loopbackIndex}
		err := routeRequest("address "+a.String(), unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, header, func(e *netlink.AttributeEncoder) {
			e.Bytes(unix.IFA_LOCAL, a.Addr().AsSlice())
			e.Bytes(unix.IFA_ADDRESS, a.Addr().AsSlice())
			e.Uint32(unix.IFA_FLAGS, unix.IFA_F_NOPREFIXROUTE)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// defaultRoute routes everything to lo. The preferred source is required: without it
// responses to refused packets can't be routed back, and connections hang instead of
// failing.
func defaultRoute(f firewall.Family) error {
	src := netip.MustParseAddr("127.0.0.1")
	header := unix.RtMsg{Family: unix.AF_INET, Table: unix.RT_TABLE_MAIN, Protocol: unix.RTPROT_STATIC, Scope: unix.RT_SCOPE_LINK, Type: unix.RTN_UNICAST}
	if f == firewall.V6 {
		src, header.Family, header.Scope = netip.IPv6Loopback(), unix.AF_INET6, unix.RT_SCOPE_UNIVERSE
	}
	return routeRequest(fmt.Sprintf("IPv%d default route", f), unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, header, func(e *netlink.AttributeEncoder) {
		e.Uint32(unix.RTA_OIF, loopbackIndex)
		e.Bytes(unix.RTA_PREFSRC, src.AsSlice())
	})
}
