package room

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

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
		return fmt.Errorf("can't tell who may bind ports below 1024: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 1024 {
		return fmt.Errorf("net.ipv4.ip_unprivileged_port_start is %s, so a worker could take the guard's ports: set the sysctl net.ipv4.ip_unprivileged_port_start=1024 on the room's container", strings.TrimSpace(string(b)))
	}
	return nil
}

// familiesHere tells which families sockets exist for, and whether IPv6
// addresses do: with disable_ipv6 there are sockets and rules but no routes.
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
		return nil, false, fmt.Errorf("can't tell whether the namespace has IPv6: %w", err)
	}
	return fs, strings.TrimSpace(string(b)) == "0", nil
}

// checkLinks refuses a namespace with a way out (B20): an interface beside lo
// that is up. Fallback devices of tunnel modules (tunl0, sit0 …) appear in
// every namespace and are down; nobody in a room can change that but we.
func checkLinks() (loopbackUp bool, err error) {
	fd, err := netlinkSocket(unix.NETLINK_ROUTE)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	b := &batch{}
	b.begin(unix.RTM_GETLINK, unix.NLM_F_DUMP, "list interfaces")
	b.raw(make([]byte, unix.SizeofIfInfomsg)...)
	var others []string
	err = b.send(fd, func(typ uint16, body []byte) error {
		if typ != unix.RTM_NEWLINK {
			return nil
		}
		if len(body) < unix.SizeofIfInfomsg {
			return errShort
		}
		index := int32(binary.NativeEndian.Uint32(body[4:]))
		up := binary.NativeEndian.Uint32(body[8:])&unix.IFF_UP != 0
		switch {
		case index == loopbackIndex:
			loopbackUp = up
		case up:
			attributes(body[unix.SizeofIfInfomsg:], func(typ uint16, v []byte) bool {
				if typ == unix.IFLA_IFNAME {
					others = append(others, strings.TrimRight(string(v), "\x00"))
				}
				return true
			})
		}
		return nil
	})
	if err == nil && len(others) > 0 {
		err = fmt.Errorf("the namespace has the interface %s; a room has lo only: give its container network_mode none", strings.Join(others, ", "))
	}
	return loopbackUp, err
}

func setLoopbackUp() error {
	b := &batch{}
	b.begin(unix.RTM_NEWLINK, unix.NLM_F_ACK, "set lo up")
	b.raw(unix.AF_UNSPEC, 0, 0, 0)
	for _, v := range []uint32{loopbackIndex, unix.IFF_UP, unix.IFF_UP} { // index, flags, change
		b.buf = binary.NativeEndian.AppendUint32(b.buf, v)
	}
	return b.route()
}

// defaultRoute leads everything to lo. The preferred source is not optional:
// without it the answers to refused packets have no way back and connections
// hang instead of failing.
func defaultRoute(f firewall.Family) error {
	family, scope, src := byte(unix.AF_INET), byte(unix.RT_SCOPE_LINK), netip.MustParseAddr("127.0.0.1")
	if f == firewall.V6 {
		family, scope, src = unix.AF_INET6, unix.RT_SCOPE_UNIVERSE, netip.IPv6Loopback()
	}
	b := &batch{}
	b.begin(unix.RTM_NEWROUTE, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_REPLACE, fmt.Sprintf("IPv%d default route", f))
	b.raw(family, 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, scope, unix.RTN_UNICAST, 0, 0, 0, 0)
	b.attr(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopbackIndex))
	b.attr(unix.RTA_PREFSRC, src.AsSlice())
	return b.route()
}

func (b *batch) route() error {
	fd, err := netlinkSocket(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return b.send(fd, nil)
}
