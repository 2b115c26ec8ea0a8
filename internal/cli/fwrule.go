package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
)

// parseRule reads HOST[:PORT] as a line of allow or deny: a name or wildcard,
// an address or a range, as workshop.yaml has them. IPv6 stands in brackets
// where a port follows: [2001:db8::1]:443, [2001:db8::]/48:443.
func parseRule(text string, deny bool) (firewall.Rule, *app.Failure) {
	r := firewall.Rule{Ports: firewall.DefaultAllowPorts(), Line: firewall.LiveLine}
	if deny {
		r.Ports = []firewall.PortRange{firewall.AllPorts}
	}
	host, ports, hasPort := splitPort(text)
	if hasPort {
		var err error
		if r.Ports, err = firewall.ParsePorts(ports); err != nil {
			return r, app.Fail(app.CodeUsage, "%s: %w", quoted(text), err)
		}
	}
	if firewall.HasPort(r.Ports, 53) && (!deny || hasPort) {
		return r, app.Fail(app.CodeRefused, "%s: a line can't name port 53: it is always the guard's DNS, which answers for every allowed name", quoted(text)).
			Hint("leave port 53 out")
	}
	if p, ok := addressRange(host); ok {
		r.CIDR = p
		return r, rangeProblem(text, p)
	}
	if strings.HasPrefix(host, "[") {
		return r, app.Fail(app.CodeUsage, "%s: what stands in brackets is an IPv6 address, such as [2001:db8::1]:443", quoted(text))
	}
	p, err := firewall.ParseHostPattern(host)
	if he, ok := errors.AsType[*firewall.HostError](err); ok && (he.Problem != firewall.HostAnyTenant || !deny) {
		f := app.Fail(app.CodeUsage, "%w", err)
		if he.Hint != "" {
			f.Hint("%s", he.Hint)
		}
		return r, f
	}
	if !deny && p.Unopenable() {
		return r, app.Fail(app.CodeRefused, "%s opens nothing: %s", quoted(text), firewall.WhyUnopenable)
	}
	r.Host = p
	return r, nil
}

// splitPort cuts the port off. A colon more belongs to an IPv6 address, or to
// what isn't a host at all.
func splitPort(text string) (host, ports string, found bool) {
	if strings.HasPrefix(text, "[") {
		if end := strings.LastIndexByte(text, ']'); end > 0 {
			behind, ports, found := strings.Cut(text[end+1:], ":")
			return text[:end+1] + behind, ports, found
		}
		return text, "", false
	}
	if strings.Count(text, ":") != 1 || strings.Contains(text, "://") {
		return text, "", false
	}
	return strings.Cut(text, ":")
}

// addressRange reads an address or a range; an address is a range of one.
func addressRange(text string) (netip.Prefix, bool) {
	if inside, behind, ok := strings.Cut(strings.TrimPrefix(text, "["), "]"); ok && strings.HasPrefix(text, "[") {
		if !strings.Contains(inside, ":") || behind != "" && behind[0] != '/' {
			return netip.Prefix{}, false // brackets are for IPv6
		}
		text = inside + behind
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, true
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	return netip.Prefix{}, false
}

// rangeProblem says what workshop.yaml would say of a cidr; nil if nothing.
func rangeProblem(text string, p netip.Prefix) *app.Failure {
	switch {
	case p.Addr().Is4In6():
		return app.Fail(app.CodeUsage, "%s is an IPv4 range in IPv6 form", quoted(text)).Hint("write the IPv4 range")
	case p != p.Masked():
		return app.Fail(app.CodeUsage, "the range %s has bits behind its mask", p).Hint("write %s", p.Masked())
	}
	if c, ok := firewall.ClassifyRange(p); ok && !c.Openable() {
		return app.Fail(app.CodeRefused, "%s: %s addresses stay closed whatever a line says (B26)", quoted(text), c)
	}
	return nil
}

// ruleArg is the argument that [parseRule] reads as this rule.
func ruleArg(r firewall.Rule, deny bool) string {
	target := r.Target()
	usual := firewall.DefaultAllowPorts()
	if deny {
		usual = []firewall.PortRange{firewall.AllPorts}
	}
	if slices.Equal(r.Ports, usual) {
		return target
	}
	if r.CIDR.IsValid() && r.CIDR.Addr().Is6() {
		target = "[" + r.CIDR.Addr().String() + "]/" + strconv.Itoa(r.CIDR.Bits())
	}
	return target + ":" + firewall.FormatPorts(r.Ports)
}

// ruleLine is the rule as an item of network.allow or network.deny.
func ruleLine(r firewall.Rule, deny bool) string {
	arg := ruleArg(r, deny)
	if !r.CIDR.IsValid() && !r.Private && !r.ECH {
		return yamlScalar(arg)
	}
	form := "host: " + yamlScalar(r.Target())
	if r.CIDR.IsValid() {
		form = "cidr: " + yamlScalar(r.Target())
	}
	if arg != r.Target() {
		ports := firewall.FormatPorts(r.Ports)
		if len(r.Ports) > 1 {
			ports = "[" + strings.ReplaceAll(ports, ",", ", ") + "]"
		}
		form += ", port: " + ports
	}
	if r.Private {
		form += ", private: true"
	}
	if r.ECH {
		form += ", ech: allow"
	}
	return "{" + form + "}"
}

// yamlScalar quotes what YAML would read as something else: stars are aliases,
// "::" and commas are parts of mappings and lists, "1.5" is a number.
func yamlScalar(s string) string {
	words := []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
	if strings.ContainsAny(s, "*,[]{}") || strings.Contains(s, "::") || strings.Trim(s, "0123456789.:_-+eExX") == "" || slices.Contains(words, s) {
		return strconv.Quote(s)
	}
	return s
}

// quoted shows a word of the command line.
func quoted(s string) string { return fmt.Sprintf("%q", cutEnd(s, 80)) }

// cutEnd shortens to n characters, keeping the beginning.
func cutEnd(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}
