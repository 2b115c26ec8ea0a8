package room

import (
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/llmdo/workshop/firewall"
)

// denied returns the kernel's count of packets that went through the chain
// that refuses: the counter of its first rule.
func denied(f firewall.Family) (uint64, error) {
	c := &nftables.Conn{}
	rules, err := c.GetRules(&nftables.Table{Name: "filter", Family: nftables.TableFamily(nfproto(f))}, &nftables.Chain{Name: firewall.ChainDeny})
	if err != nil {
		return 0, fmt.Errorf("counters: %w", err)
	}
	if len(rules) > 0 {
		for _, x := range rules[0].Exprs {
			if counter, ok := x.(*expr.Counter); ok {
				return counter.Packets, nil
			}
		}
	}
	return 0, errors.New("counters: the rules are gone")
}
