package grant

import (
	"net/url"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

func (l *lines) network(n *workshop.Network) {
	l.add(Mode, "", textOf(l.form, n.Mode, firewall.Mode.String), n.Mode.Source)
	if n.OwnRoom.V {
		l.add(Room, "", "own", n.OwnRoom.Source)
	}
	var resolvers []string
	for _, r := range n.DNS {
		resolvers = append(resolvers, text(l.form, r.Value))
	}
	if len(n.DNS) > 0 {
		l.add(DNS, "", strings.Join(resolvers, ", "), n.DNS[0].Source)
	}
	if n.Proxy.V != "" || n.Proxy.Source.Template != "" {
		proxy := ProxyHost(n.Proxy.V)
		if l.form == Symbols && n.Proxy.Source.Template != "" {
			proxy = n.Proxy.Source.Template
		}
		l.add(Proxy, "", proxy, n.Proxy.Source)
	}
	for _, r := range n.Allow {
		t := RuleText(r, l.form)
		l.add(Allow, t, t, r.Source)
	}
	for _, r := range n.Deny {
		t := RuleText(r, l.form)
		l.add(Deny, t, t, r.Source)
	}
}

// RuleText is "api.example.org tcp/80,443", with what it opens beside that and the preset
// that it is of.
func RuleText(r firewall.Rule, f Form) string {
	target := r.Target()
	if f == Values {
		target = r.Meant()
	}
	out := target + " tcp/" + firewall.FormatPorts(r.Ports)
	if len(r.Ports) == 1 && r.Ports[0] == firewall.AllPorts {
		out = target + " tcp"
	}
	if r.Private {
		out += " private"
	}
	if r.ECH {
		out += " ech"
	}
	if !r.Upload.IsZero() {
		out += " upload " + r.Upload.String()
	}
	if r.Preset != "" {
		out += " preset " + r.Preset
	}
	return out
}

// ProxyHost leaves out of a proxy's URL what may be a password; empty for no proxy.
func ProxyHost(proxy string) string {
	u, err := url.Parse(proxy)
	if err != nil {
		return "that the file names"
	}
	return u.Host
}
