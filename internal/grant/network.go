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
	if len(n.DNS) > 0 {
		l.add(DNS, "", strings.Join(resolvers(n, l.form), ", "), n.DNS[0].Source)
	}
	l.add(Proxy, "", proxyText(n, l.form), n.Proxy.Source)
	for _, r := range n.Allow {
		t := RuleText(r, l.form)
		l.add(Allow, t, t, r.Source)
	}
	for _, r := range n.Deny {
		t := RuleText(r, l.form)
		l.add(Deny, t, t, r.Source)
	}
	for _, a := range n.Agents {
		l.add(Agent, a.String(), a.String(), a.Source)
	}
}

// RuleText is "api.example.org tcp/80,443", with what it opens beside that and the preset
// that it is of.
func RuleText(r firewall.Rule, f Form) string {
	target := targetText(r, f)
	out := target + " tcp/" + firewall.FormatPorts(r.Ports)
	if len(r.Ports) == 1 && r.Ports[0] == firewall.AllPorts {
		out = target + " tcp"
	}
	if !r.Endpoint.IsZero() {
		out += " " + r.Endpoint.String()
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

func targetText(r firewall.Rule, f Form) string {
	if f == Values {
		return r.Meant()
	}
	return r.Target()
}

// LineText is [RuleText], or the preset that a line of the file names.
func LineText(r firewall.Rule, f Form) string {
	switch {
	case r.Preset == "":
		return RuleText(r, f)
	case r.Upload.IsZero():
		return "preset " + r.Preset
	}
	return "preset " + r.Preset + " upload " + r.Upload.String()
}

func resolvers(n *workshop.Network, f Form) (out []string) {
	for _, r := range n.DNS {
		out = append(out, text(f, r.Value))
	}
	return out
}

// proxyText leaves out of a proxy's URL what may be a password, and names its credential;
// empty for no proxy.
func proxyText(n *workshop.Network, f Form) string {
	text := proxyHost(n, f)
	if text != "" && n.ProxyCredential.V != "" {
		text += " credential " + n.ProxyCredential.V
	}
	return text
}

func proxyHost(n *workshop.Network, f Form) string {
	if f == Symbols && n.Proxy.Source.Template != "" {
		return n.Proxy.Source.Template
	}
	u, err := url.Parse(n.Proxy.V)
	if err != nil {
		return "that the file names"
	}
	return u.Host
}
