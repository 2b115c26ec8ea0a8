package proxy

import (
	"net/netip"

	"github.com/llmdo/workshop/firewall"
)

// DecideAddr is what the policy says about an address that a worker dials, before
// a name is known: on other ports than 80 and 443, names that it is pinned for
// count. It returns such a name, "" for none.
func (r *Room) DecideAddr(to netip.AddrPort) (firewall.Decision, string) {
	return r.addrDecision(r.Policy(), to, to.Port() != 80 && to.Port() != 443)
}

// Carried is how many connections are being carried.
func (f *Flows) Carried() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for x := range f.open {
		if x.out != nil {
			n++
		}
	}
	return n
}
