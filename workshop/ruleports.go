package workshop

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// portList is `port:` of a rule: a number, a range or a list of both.
type portList []firewall.PortRange

func (p *portList) decode(d *decoder, n *node, f *field) bool {
	nodes := []*node{n}
	if n.kind == listNode {
		nodes = n.items
	}
	for _, x := range nodes {
		var text Value[string]
		g := *f
		g.number, g.literal = true, "Which ports are open must be visible in the file."
		if !text.decode(d, x, &g) {
			return false
		}
		ports, err := parsePorts(text.V)
		if err != nil {
			write := firewall.PortsMeant(text.V)
			if n == x && write != "" {
				write = "port: " + write
			}
			d.badPort(text.Source.Range, err, text.V, write)
			return false
		}
		*p = append(*p, ports...)
	}
	*p = firewall.NormalizePorts(*p)
	if len(*p) == 0 {
		d.fail(n.rng, "bad-port", "the list of ports is empty", "remove `port`: then it is 80 and 443")
		return false
	}
	return d.checkNoDNS(*p, n.rng)
}

// badPort reports ports that can't be read; write is what was meant, if it is known.
func (d *decoder) badPort(at diag.Range, err error, ports, write string) {
	why, hint := "", ""
	if write != "" {
		hint = "write " + clip(write)
	} else if strings.HasSuffix(ports, "/udp") {
		why, hint = whyNotBuilt+" There is no relay for UDP.", "remove the line"
	}
	d.failDetail(at, "bad-port", err.Error(), why, hint)
}

func (d *decoder) checkNoDNS(ports []firewall.PortRange, at diag.Range) bool {
	if !firewall.HasPort(ports, 53) {
		return true
	}
	d.failDetail(at, "dns-port", "a rule can't name port 53",
		"Port 53 is always the guard's DNS, which answers for every allowed name.", "remove port 53; `network.dns` sets the guard's resolvers")
	return false
}

// portsPattern is the one notation of ports; it is in the JSON Schema too.
const portsPattern = `[0-9]+(-[0-9]+)?(, ?[0-9]+(-[0-9]+)?)*`

var portsRE = lazily(`^` + portsPattern + `$`)

// parsePorts is firewall.ParsePorts without blanks in odd places.
func parsePorts(text string) ([]firewall.PortRange, error) {
	ports, err := firewall.ParsePorts(text)
	if err == nil && !portsRE().MatchString(text) {
		return nil, fmt.Errorf("%q is not a list of ports; write 80 or 80,443", clip(text))
	}
	return ports, err
}
