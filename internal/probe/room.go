//go:build linux

package probe

import (
	"net"
	"slices"
	"strings"

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

// xtables opens what iptables-legacy(8) needs for every call.
func xtables(args) (string, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err == nil {
		unix.Close(fd)
	}
	return seenOf(err)
}
