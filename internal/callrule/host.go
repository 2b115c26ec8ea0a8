package callrule

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/tool"
)

// host is a host as network.allow writes it, with ports or without.
type host struct {
	pattern firewall.HostPattern
	ports   []firewall.PortRange // nil: not given
}

func parseHost(match string) (matcher, *Error) {
	name, ports, found := match, "", false
	if i := strings.LastIndexByte(match, ':'); i >= 0 && !strings.Contains(match, "/") {
		name, ports, found = match[:i], match[i+1:], true
	}
	p, err := firewall.ParseHostPattern(name)
	if p.IsZero() { // who may register below a wildcard is the guard's matter
		why := ""
		if err != nil {
			why = ": " + err.Error()
		}
		return nil, &Error{Summary: "the match " + quote(match) + " is not a host" + why, Hint: "write a host as in network.allow: api.github.com, *.example.org, example.org:8080; not a URL"}
	}
	h := host{pattern: p}
	if found {
		if h.ports, err = firewall.ParsePorts(ports); err != nil {
			return nil, &Error{Summary: "the match " + quote(match) + " has no port: " + err.Error(), Hint: "write example.org:8080"}
		}
	}
	return h, nil
}

// target is where a URL leads to first; whither a server sends on from there is
// the guard's to decide.
type target struct {
	name firewall.Name
	addr bool // it is an address
	port uint16
	user bool // it has a user name
}

func targetOf(c Call) (target, bool) {
	var a tool.FetchURLArgs
	if tool.Decode(c.Args, &a) != nil {
		return target{}, false
	}
	u, err := url.Parse(a.URL)
	if err != nil || !isOneOf(u.Scheme, "http", "https") || u.Host == "" {
		return target{}, false
	}
	t := target{port: 443, user: u.User != nil}
	if u.Scheme == "http" {
		t.port = 80
	}
	if s := u.Port(); s != "" {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return target{}, false
		}
		t.port = uint16(n)
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		t.addr = true
		return t, true
	}
	t.name, err = firewall.ParseName(u.Hostname())
	return t, err == nil
}

func (h host) grants(c Call) bool {
	t, ok := targetOf(c)
	ports := h.ports
	if ports == nil {
		ports = firewall.DefaultAllowPorts()
	}
	return ok && !t.addr && !t.user && h.pattern.Match(t.name) && firewall.HasPort(ports, t.port)
}

func (h host) restricts(c Call) Certainty {
	t, ok := targetOf(c)
	switch {
	case !ok:
		return Maybe
	case !t.addr && h.pattern.Match(t.name) && (h.ports == nil || firewall.HasPort(h.ports, t.port)):
		return Yes
	}
	return No
}
