//go:build linux

// Package testcarrier stands for a sandbox with a kernel of its own: a network namespace in
// which every IPv4 address is the worker's own, with a relay.
package testcarrier

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier/relay"
)

// Main is a relay's process: SOCKET PORT… It prints READY, and runs until it is
// killed.
func Main(args []string) int {
	o := relay.Options{
		Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
			return new(net.Dialer).DialContext(ctx, "unix", args[0])
		},
		Log: func(line string) { fmt.Fprintln(os.Stderr, "relay: "+line) },
	}
	for _, p := range args[1:] {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			fmt.Println("FAILED", err)
			return 1
		}
		o.Ports = append(o.Ports, uint16(n))
	}
	if _, err := relay.New(o); err != nil {
		fmt.Println("FAILED", err)
		return 1
	}
	fmt.Println("READY")
	select {}
}

// EveryAddress makes every IPv4 address local in the network namespace of the thread.
func EveryAddress() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	_, all, err := net.ParseCIDR("0.0.0.0/0")
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{
		LinkIndex: lo.Attrs().Index, Dst: all, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST, Src: net.IPv4(127, 0, 0, 1),
	})
}
