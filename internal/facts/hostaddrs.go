package facts

import (
	"net"
	"net/netip"
	"slices"

	"github.com/llmdo/workshop/firewall"
)

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
