package facts

import (
	"net"
	"net/netip"
	"slices"

	"github.com/llmdo/workshop/firewall"
)

// userNetwork are the host and the resolver of the network in user space that engines
// without root have: the first leads to the machine's loopback where the user allows it
// (slirp4netns(1): --disable-host-loopback; containers.conf(5): allow_host_loopback), the
// second to its resolvers. Another --cidr isn't known here.
var userNetwork = []string{"10.0.2.2", "10.0.2.3", "fd00::2", "fd00::3"}

// hostAddrs returns the machine's addresses that aren't in a class of the never-list.
func hostAddrs() ([]string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && firewall.Classify(p.Addr()) == firewall.Public {
			out = append(out, p.Addr().Unmap().String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
