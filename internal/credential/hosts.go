package credential

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// isOfProxy reports whether a credential has `as: proxy`, wherever that stands in it.
func isOfProxy(n *yaml.Node) bool {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "as" && n.Content[i+1].Kind == yaml.ScalarNode && n.Content[i+1].Value == "proxy" {
			return true
		}
	}
	return false
}

// hosts reads the hosts; port is that of one without, 0 for those of proxies.
func (p *parser) hosts(n *yaml.Node, c *Credential, port uint16) {
	const example = "hosts: [api.example.org]"
	for i, text := range p.list(n, maxHosts, example) {
		if text == "" {
			continue
		}
		at := n.Content[i]
		h, err := parseHost(text, port)
		if port == 0 {
			h, err = ParseProxyHost(text)
		}
		if err != nil && port == 0 {
			p.fail(at, err.Error(), proxyHint)
			continue
		}
		if err != nil {
			p.fail(at, err.Error(), fmt.Sprintf("write "+example+", without scheme, path and wildcard; another port than %d is \"api.example.org:8443\"", port))
			continue
		}
		if slices.Contains(c.Hosts, h) {
			p.fail(at, fmt.Sprintf("the host %s is given twice", h), "")
		}
		c.Hosts = append(c.Hosts, h)
	}
}

// ParseHost reads a host: its name, or "name:port".
func ParseHost(text string) (Host, error) { return parseHost(text, 443) }

func parseHost(text string, usual uint16) (Host, error) {
	host, port, hasPort := strings.Cut(text, ":")
	name, err := firewall.ParseName(host)
	if err != nil || name.String() != strings.ToLower(host) {
		return Host{}, fmt.Errorf("%q is not the name of one host", clip.Bytes(text, 80))
	}
	h := Host{Name: name.String(), Port: usual}
	if hasPort {
		ports, err := firewall.ParsePorts(port)
		if err != nil || len(ports) != 1 || ports[0].First != ports[0].Last {
			return Host{}, fmt.Errorf("%q has no port from 1 to 65535 after the colon", clip.Bytes(text, 80))
		}
		h.Port = ports[0].First
	}
	return h, nil
}

// ParseProxyHost reads the host of a proxy, HOST:PORT: a name or an address, and always a port.
func ParseProxyHost(text string) (Host, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil || port == "" {
		return Host{}, fmt.Errorf("%q has no port: the host of a proxy is HOST:PORT", clip.Bytes(text, 80))
	}
	name, ok := firewall.Proxy{Host: host}.Exact()
	if !ok || name != strings.ToLower(host) {
		return Host{}, fmt.Errorf("%q is not the name or the address of one host", clip.Bytes(text, 80))
	}
	ports, err := firewall.ParsePorts(port)
	if err != nil || len(ports) != 1 || ports[0].First != ports[0].Last {
		return Host{}, fmt.Errorf("%q has no port from 1 to 65535 after the colon", clip.Bytes(text, 80))
	}
	return Host{name, ports[0].First}, nil
}
