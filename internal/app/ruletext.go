package app

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// Parse reads HOST[:PORT] of the command line into Rules; all problems at once.
func (o *RuleChange) Parse(args []string) error {
	var texts []string
	problems := &Failure{}
	for _, arg := range args {
		r, f := parseRule(arg, o.Deny)
		if f == nil && r.CIDR.IsValid() && (o.Private || o.ECH) {
			f = Fail(CodeUsage, "%s: --private and --ech are for names; a range names its addresses itself", quoted(arg))
		}
		if f != nil {
			problems.Code = max(problems.Code, f.Code)
			texts = append(texts, f.Error())
			problems.Hints = append(problems.Hints, f.Hints...)
			continue
		}
		r.Private, r.ECH = o.Private, o.ECH
		if !slices.ContainsFunc(o.Rules, func(x firewall.Rule) bool { return RuleArg(x, o.Deny) == RuleArg(r, o.Deny) }) {
			o.Rules = append(o.Rules, r)
		}
	}
	if len(texts) > 0 {
		problems.Err = errors.New(strings.Join(texts, "\n"))
		return problems
	}
	return nil
}

// parseRule reads HOST[:PORT] as a line of allow or deny: a name or wildcard,
// an address or a range, as workshop.yaml has them. IPv6 is written in brackets
// where a port follows: [2001:db8::1]:443, [2001:db8::]/48:443.
func parseRule(text string, deny bool) (firewall.Rule, *Failure) {
	r := firewall.Rule{Ports: defaultPorts(deny), Line: firewall.LiveLine}
	host, ports, hasPort := splitPort(text)
	if name := strings.ToLower(strings.TrimSpace(ports)); host == "preset" && presets.Has(name) { // as in the file
		return r, presetAsHost(name, text, deny)
	}
	if hasPort {
		var err error
		if r.Ports, err = firewall.ParsePorts(ports); err != nil {
			f := Fail(CodeUsage, "%s: %w", quoted(text), err)
			if meant := firewall.PortsMeant(ports); meant != "" {
				f.Hint("write %s:%s", host, meant)
			}
			return r, f
		}
	}
	if firewall.HasPort(r.Ports, 53) && (!deny || hasPort) {
		return r, Fail(CodeRefused, "%s: a line can't name port 53: it is always the guard's DNS, which answers for every allowed name", quoted(text)).
			Hint("leave port 53 out")
	}
	if p, ok := addressRange(host); ok {
		r.CIDR = p
		return r, rangeProblem(text, p)
	}
	if name := strings.ToLower(host); !hasPort && presets.Has(name) {
		return r, presetAsHost(name, text, deny)
	}
	if strings.HasPrefix(host, "[") {
		return r, Fail(CodeUsage, "%s: only an IPv6 address is written in brackets, such as [2001:db8::1]:443", quoted(text))
	}
	p, err := firewall.ParseHostPattern(host)
	if he, ok := errors.AsType[*firewall.HostError](err); ok && (he.Problem != firewall.HostAnyTenant || !deny) {
		f := Fail(CodeUsage, "%w", err)
		if he.Hint != "" {
			f.Hint("%s", he.Hint)
		}
		return r, f
	}
	if !deny && p.Unopenable() {
		return r, Fail(CodeRefused, "%s: %s", quoted(text), p.WhyUnopenable())
	}
	r.Host = p
	return r, nil
}

// presetAsHost refuses a preset, which is for the file: its hosts are listed there.
func presetAsHost(name, text string, deny bool) *Failure {
	f := Fail(CodeUsage, "%s is the name of a preset, not a host", quoted(text))
	if deny {
		return f.Hint("presets are for allow; deny the hosts that `workshop presets %s` lists", name)
	}
	return f.Hint("add `- preset: %s` to network.allow in workshop.yaml and run `workshop up`; a host of that name is %s:80,443", name, name)
}

// defaultPorts are those of a line without a port.
func defaultPorts(deny bool) []firewall.PortRange {
	if deny {
		return []firewall.PortRange{firewall.AllPorts}
	}
	return firewall.DefaultAllowPorts()
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
func rangeProblem(text string, p netip.Prefix) *Failure {
	switch {
	case p.Addr().Is4In6():
		return Fail(CodeUsage, "%s is an IPv4 range in IPv6 form", quoted(text)).Hint("write the IPv4 range")
	case p != p.Masked():
		return Fail(CodeUsage, "the range %s has bits set beyond its mask", p).Hint("write %s", p.Masked())
	}
	if c, ok := firewall.ClassifyRange(p); ok && !c.Openable() {
		return Fail(CodeRefused, "%s: %s addresses stay closed whatever a line says (B26)", quoted(text), c)
	}
	return nil
}

// RuleArg is the argument that [parseRule] reads as this rule. No argument denies
// all ports of a host that has the name of a preset.
func RuleArg(r firewall.Rule, deny bool) string {
	target := r.Target()
	if slices.Equal(r.Ports, defaultPorts(deny)) && (deny || !presets.Has(target)) {
		return target
	}
	if r.CIDR.IsValid() && r.CIDR.Addr().Is6() {
		target = "[" + r.CIDR.Addr().String() + "]/" + strconv.Itoa(r.CIDR.Bits())
	}
	return target + ":" + firewall.FormatPorts(r.Ports)
}

// RuleLine is the rule as an item of network.allow or network.deny.
func RuleLine(r firewall.Rule, deny bool) string {
	arg := RuleArg(r, deny)
	if !r.CIDR.IsValid() && !r.Private && !r.ECH && r.Upload.IsZero() && r.Endpoint.IsZero() && !presets.Has(arg) {
		return yamlScalar(arg)
	}
	form := "host: " + yamlScalar(r.Target())
	if r.CIDR.IsValid() {
		form = "cidr: " + yamlScalar(r.Target())
	}
	if arg != r.Target() && !(!r.Endpoint.IsZero() && firewall.FormatPorts(r.Ports) == "443") {
		ports := firewall.FormatPorts(r.Ports)
		if len(r.Ports) > 1 {
			ports = "[" + strings.ReplaceAll(ports, ",", ", ") + "]"
		}
		form += ", port: " + ports
	}
	if e := r.Endpoint; !e.IsZero() {
		form += ", at: " + e.At
		if e.Git.IsZero() {
			form += ", requests: " + quotedList(e.Requests.Texts())
		} else {
			form += ", git: " + gitText(e.Git)
		}
		if e.EncodedSlash {
			form += ", encoded_slash: true"
		}
		if e.Credential != "" {
			form += ", credential: " + e.Credential
		}
	}
	if r.Private {
		form += ", private: true"
	}
	if r.ECH {
		form += ", ech: allow"
	}
	if !r.Upload.IsZero() {
		form += ", upload: " + r.Upload.String()
	}
	return "{" + form + "}"
}

// quotedList is texts as a list of the file.
func quotedList(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = strconv.Quote(t)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

type resolvedGit struct {
	Read          []string            `yaml:"read,omitempty" json:"read,omitempty"`
	Push          map[string][]string `yaml:"push,omitempty" json:"push,omitempty"`
	Delete        map[string][]string `yaml:"delete,omitempty" json:"delete,omitempty"`
	AnyRepository bool                `yaml:"any_repository,omitempty" json:"any_repository,omitempty"`
}

// resolveGit is `git` of a line for [Resolved].
func resolveGit(g request.Git) resolvedGit {
	return resolvedGit{g.ReadTexts(), g.Push.Map(), g.Delete.Map(), g.AnyRepository}
}

// gitText is `git` of a line as the file has it.
func gitText(g request.Git) string {
	var parts []string
	if len(g.Read) > 0 {
		parts = append(parts, "read: "+quotedList(g.ReadTexts()))
	}
	for _, x := range []struct {
		key  string
		refs request.Refs
	}{{"push", g.Push}, {"delete", g.Delete}} {
		var refs []string
		for _, r := range x.refs {
			refs = append(refs, strconv.Quote(r.Repository.String())+": "+quotedList(r.Texts()))
		}
		if len(refs) > 0 {
			parts = append(parts, x.key+": {"+strings.Join(refs, ", ")+"}")
		}
	}
	if g.AnyRepository {
		parts = append(parts, "any_repository: true")
	}
	return "{" + strings.Join(parts, ", ") + "}"
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
func quoted(s string) string { return fmt.Sprintf("%q", clip.Runes(s, 80)) }
