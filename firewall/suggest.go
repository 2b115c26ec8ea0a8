package firewall

import (
	"net/netip"
	"strconv"
	"strings"
)

// suggest returns the shortest allow line for a port of a name, as it is
// written in workshop.yaml; "" for port 53, which no line opens.
func suggest(name string, port uint16) string {
	switch port {
	case 80, 443:
		return quoteName(name)
	case 0, 53:
		return ""
	}
	return name + ":" + portText(port)
}

func suggestAddr(a netip.Addr, port uint16) string {
	a = a.Unmap()
	if port == 0 || port == 53 || !Classify(a).Openable() {
		return ""
	}
	return "{cidr: " + quoteYAML(netip.PrefixFrom(a, a.BitLen()).String()) + ", port: " + portText(port) + "}"
}

func portText(port uint16) string { return strconv.Itoa(int(port)) }

// quoteName quotes a name that YAML could take for a number or a word like no.
func quoteName(name string) string {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == name || last[0] >= '0' && last[0] <= '9' {
		return strconv.Quote(name)
	}
	return name
}

// quoteYAML quotes what would not be a plain scalar in a flow mapping: stars
// are aliases, and colons are easily misread.
func quoteYAML(s string) string {
	for i := range len(s) {
		if s[i] == '*' || s[i] == ':' || s[i] == '{' || s[i] == '$' {
			return strconv.Quote(s)
		}
	}
	return s
}
