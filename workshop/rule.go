package workshop

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
)

// ruleForm is the long form of a line of allow or deny.
type ruleForm struct {
	Source       diag.Source
	Host         *Value[string] `key:"host" example:"write host: \"*.example.org\"" doc:"A name, *.NAME (one label more) or **.NAME (one or more)."`
	CIDR         *Value[string] `key:"cidr" example:"write cidr: 10.20.0.0/16" doc:"A range of addresses, reached by address."`
	Port         *portList      `key:"port" example:"write port: 5432" default:"[80, 443]" doc:"TCP ports: a number, a range such as 8000-8010, or a list. Without it, deny has all."`
	Private      *Value[bool]   `key:"private" literal:"The policy is a generated file." example:"write private: true" default:"false" doc:"The name may resolve to a private address."`
	AnyTenant    *Value[bool]   `key:"any_tenant" literal:"The policy is a generated file." example:"write any_tenant: true" default:"false" doc:"Allows a wildcard where anyone can register a name."`
	ECH          *echAllow      `key:"ech" example:"write ech: allow" doc:"Accepts an encrypted ClientHello by its outer name; the inner can't be checked."`
	Upload       *uploadBudget  `key:"upload" example:"write upload: 5M/h" doc:"Limits what the room's workers send there together, per minute (m), hour (h) or day (d)."`
	At           *Value[string] `key:"at" literal:"The policy is a generated file." example:"write at: github" doc:"Makes an endpoint: tools reach the host only at $WORKSHOP_ENDPOINT_NAME."`
	Requests     *requestList   `key:"requests" example:"write requests: [\"GET,HEAD /repos/acme/**\"]" doc:"What it lets through: methods and a path; * is one segment, /** all below, \"*\" everything."`
	Git          *gitRules      `key:"git" example:"write git: {read: [acme/app]}" doc:"In place of requests."`
	EncodedSlash *Value[bool]   `key:"encoded_slash" literal:"The policy is a generated file." example:"write encoded_slash: true" default:"false" doc:"Its paths may have %2f."`
	Credential   *Value[string] `key:"credential" literal:"Which of your credentials is used must be visible in the file." example:"write credential: github" doc:"The user's credential that the guard adds to its requests; see workshop credential."`
	Preset       *Value[string] `key:"preset" literal:"What a preset opens must be visible in the file." example:"write preset: npm" doc:"A list of hosts that comes with the program; workshop presets lists them."`
}

func (*ruleForm) title() string { return "a network rule" }

const whyNotBuilt = "Rules that can't be enforced are refused."

var ruleKeys = map[string]instead{
	"protocol": {whyNotBuilt + " There is no relay for UDP and other protocols; rules are about TCP.", hintRemove},
	"proto":    {whyNotBuilt + " There is no relay for UDP and other protocols; rules are about TCP.", hintRemove},
	"udp":      {whyNotBuilt + " There is no relay for UDP.", hintRemove},
	"method":   {"", hintRequests},
	"methods":  {"", hintRequests},
	"path":     {"", hintRequests},
	"paths":    {"", hintRequests},
	"request":  {"", hintRequests},
	"rules":    {"", hintRequests},
	"endpoint": {"", "write at: NAME, and requests"},
	"url":      {"", "write host: NAME"},
	"token":    {whyCredential, hintCredential},
	"auth":     {whyCredential, hintCredential},
	"header":   {whyCredential, hintCredential},
	"headers":  {whyCredential, hintCredential},
	"secret":   {whyCredential, hintCredential},
	"ports":    {"", "write port: 443, port: 8000-8010 or port: [80, 443]"},
	"hosts":    {"", "write a line for each host"},
	"ip":       {"", "write cidr: ADDRESS/32"},
	"name":     {"", "write host: NAME"},
	"presets":  {"", "write a line for each preset: `- preset: NAME`"},

	"budget":     {"", hintUpload},
	"max_upload": {"", hintUpload},
	"limit":      {"", hintUpload},
	"quota":      {"", hintUpload},
	"rate":       {"", hintUpload},
	"bandwidth":  {"", hintUpload},
	"bytes":      {"", hintUpload},
	"download":   {"Only uploads are limited.", hintUpload},
	"esni":       {"", "write ech: allow"},
}

const hintRequests = "write at: NAME and requests: [\"GET,HEAD /repos/acme/**\"]"

// Values and the hosts that they may go to stand in the user's own file (B33).
const (
	whyCredential  = "What is sent stands in the user's own file of credentials, by a name."
	hintCredential = "write credential: NAME beside at and requests, and run `workshop credential add NAME`"
)

const hintUpload = "write upload: 5M/h"

// allowLine is one line of allow; a preset makes several rules of it.
type allowLine []firewall.Rule

func (l *allowLine) decode(d *decoder, n *node, f *field) bool {
	r, preset, ok := d.rule(n, f, false)
	if !ok {
		return false
	}
	if preset == "" {
		*l = allowLine{r}
		return true
	}
	p, found := d.presets[preset]
	if !found {
		x, known := presets.Get(preset)
		if !known {
			return d.unknownPreset(n, preset)
		}
		p = x
		if d.presets == nil {
			d.presets = map[string]presets.Preset{}
		}
		d.presets[preset] = p
	}
	for _, x := range p.Rules {
		*l = append(*l, firewall.Rule{Host: x.Host, Ports: slices.Clone(x.Ports), Preset: preset, Line: r.Line, Source: r.Source})
	}
	return true
}

// nearestPreset is [nearest], or the first preset that has the name as a part, or
// whose name the first word is: nodejs for node, github for github-cli.
func nearestPreset(name string, names []string) string {
	if near := nearest(name, names); near != "" || len(name) < 2 {
		return near
	}
	low := strings.ToLower(name)
	first, _, _ := strings.Cut(low, "-")
	for _, is := range []func(string) bool{
		func(preset string) bool { return strings.HasPrefix(preset, low) },
		func(preset string) bool { return strings.Contains(preset, low) || preset == first },
	} {
		if i := slices.IndexFunc(names, is); i >= 0 {
			return names[i]
		}
	}
	return ""
}

func (d *decoder) unknownPreset(n *node, name string) bool {
	names := presets.Names()
	hint := "presets: " + strings.Join(names, ", ")
	if near := nearestPreset(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? `workshop presets` lists all", near)
	}
	at := n.rng
	for _, p := range n.pairs {
		if p.key.text == "preset" {
			at = p.value.rng
		}
	}
	d.fail(at, "unknown-preset", fmt.Sprintf("there is no preset %q", clip(name)), hint)
	return false
}

// denyLine is one line of deny.
type denyLine firewall.Rule

func (l *denyLine) decode(d *decoder, n *node, f *field) bool {
	r, preset, ok := d.rule(n, f, true)
	if ok && preset != "" {
		d.fail(n.rng, "bad-rule", "a preset can't be denied", "presets are for allow; write the hosts")
		return false
	}
	*l = denyLine(r)
	return ok
}

// rule reads a line of allow or deny.
func (d *decoder) rule(n *node, f *field, deny bool) (r firewall.Rule, preset string, ok bool) {
	r.Source = diag.Source{Range: n.rng}
	file := d.base()
	if d.as != ownFile {
		file = d.src.name // with the source's address: it is no line of the project
	}
	r.Line = file + ":" + strconv.Itoa(n.rng.Start.Line)
	r.Ports = firewall.DefaultAllowPorts()
	if deny {
		r.Ports = []firewall.PortRange{firewall.AllPorts}
	}
	switch n.kind {
	case scalarNode:
		return r, "", d.shortRule(n, f, &r, deny)
	case mapNode:
	default:
		d.wrongType(n, f, "a host such as api.github.com or a mapping")
		return r, "", false
	}
	var form ruleForm
	if !d.mapping(n, reflect.ValueOf(&form).Elem()) {
		return r, "", false
	}
	given := 0
	for _, set := range []bool{form.Host != nil, form.CIDR != nil, form.Preset != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		d.fail(n.rng, "bad-rule", "a network rule needs exactly one of host, cidr and preset", "write {host: NAME, port: 443}, {cidr: 10.20.0.0/16, port: 5432} or {preset: npm}")
		return r, "", false
	}
	if form.Preset != nil {
		if len(n.pairs) > 1 {
			d.fail(n.rng, "bad-rule", "a preset has its own hosts and ports", "write {preset: "+form.Preset.V+"} alone")
			return r, "", false
		}
		return r, form.Preset.V, true
	}
	if form.Port != nil {
		r.Ports = *form.Port
	}
	r.Private = form.Private != nil && form.Private.V
	r.AnyTenant = form.AnyTenant != nil && form.AnyTenant.V
	if deny && (form.ECH != nil || form.Upload != nil) {
		d.fail(n.rng, "bad-rule", "ech and upload are for lines of allow; what is denied sends nothing", "remove them")
		return r, "", false
	}
	r.ECH = form.ECH != nil
	if !d.endpoint(&r, n, &form, deny) {
		return r, "", false
	}
	if form.Upload != nil {
		r.Upload = firewall.Budget(*form.Upload)
	}
	if form.CIDR != nil {
		if form.Private != nil || form.AnyTenant != nil {
			d.fail(n.rng, "bad-rule", "private and any_tenant are for names; a cidr rule names its addresses itself", "remove them")
			return r, "", false
		}
		return r, "", d.setCIDR(&r, form.CIDR)
	}
	return r, "", d.setHost(&r, form.Host.V, form.Host.Source, deny) && d.namedHost(&r, form.Host)
}

// mappingAsText is a line that was meant as a mapping: quoted, or without a space
// after the colon.
var mappingAsText = lazily(`^(preset|host|cidr) ?: ?(\S.*)$`)

// quotedMapping reports a mapping that YAML reads as text.
func (d *decoder) quotedMapping(n *node, deny bool) bool {
	m := mappingAsText().FindStringSubmatch(n.text)
	if m == nil || len(n.text) > 80 || portsRE().MatchString(m[2]) { // a host of that name with a port
		return false
	}
	line := "write " + d.src.item(n, m[1]+": "+m[2])
	if strings.Contains(n.text, ": ") {
		line += ", without quotes"
	} else {
		line += ", with a space after the colon"
	}
	if deny && m[1] == "preset" {
		line = "presets are for allow; write the hosts"
	}
	d.fail(n.rng, "bad-rule", fmt.Sprintf("%q is text, not a mapping with the key %s", n.text, m[1]), line)
	return true
}

// presetAsHost refuses the bare name of a preset, which would allow or deny a
// host of that name and not what is meant. A host is written with its key.
func (d *decoder) presetAsHost(n *node, text string, deny bool) bool {
	name := strings.ToLower(text)
	if !presets.Has(name) {
		return false
	}
	hint := fmt.Sprintf("write %s, or {host: %s} for a host of that name", d.src.item(n, "preset: "+name), name)
	if deny {
		hint = fmt.Sprintf("presets are for allow; write the hosts, which `workshop presets %s` lists", name)
	}
	d.fail(n.rng, "bad-rule", fmt.Sprintf("%q is the name of a preset, not a host", clip(text)), hint)
	return true
}

// shortRule reads "host" or "host:port".
func (d *decoder) shortRule(n *node, f *field, r *firewall.Rule, deny bool) bool {
	var text string
	s, ok := d.scalar(n, f, &text)
	if !ok {
		return false
	}
	if d.quotedMapping(n, deny) {
		return false
	}
	host, port, found := s.cutLast(':')
	value := s.text()
	if !found && d.presetAsHost(n, value, deny) {
		return false
	}
	if found && strings.HasPrefix(value, "[") && strings.HasSuffix(host.text(), "]") {
		return d.setHost(r, strings.Trim(host.text(), "[]"), s.source(), deny) // refused: an address
	}
	if !found || strings.Contains(value, "://") || strings.Count(value, ":") > 1 {
		return d.setHost(r, value, s.source(), deny)
	}
	if name := port.variable(); name != "" {
		d.failDetail(port.rng(), "variable-not-allowed", "a port of a network rule can't be a variable", whyPolicy, "write the port out")
		return false
	}
	ports, err := parsePorts(port.text())
	if err != nil {
		write := firewall.PortsMeant(port.text())
		if write != "" {
			write = quoteFlow(strings.TrimSuffix(n.text, port.text()) + write)
		}
		d.badPort(port.rng(), err, port.text(), write)
		return false
	}
	if !d.checkNoDNS(ports, port.rng()) {
		return false
	}
	r.Ports = ports
	return d.setHost(r, host.text(), host.source(), deny)
}

// setHost sets the host of a rule, or its template where the file has a
// variable: then the value is checked but stays out of the policy.
func (d *decoder) setHost(r *firewall.Rule, host string, at diag.Source, deny bool) bool {
	p, err := firewall.ParseHostPattern(host)
	if err != nil {
		var he *firewall.HostError
		if !errors.As(err, &he) {
			d.fail(at.Range, "bad-host", err.Error(), "")
			return false
		}
		if he.Problem != firewall.HostAnyTenant || !r.AnyTenant && !deny {
			code := "bad-host"
			if he.Problem == firewall.HostPublicSuffix || he.Problem == firewall.HostAnyTenant {
				code = "wide-host"
			}
			d.fail(at.Range, code, he.Message, addressHint(host, he.Hint, r.Ports))
			return false
		}
	} else if r.AnyTenant && !p.IsWildcard() {
		d.fail(at.Range, "bad-rule", "any_tenant is for wildcards; "+host+" is one name", "remove any_tenant")
		return false
	}
	if !deny && !d.openable(p, r.Ports, r.Private, at.Range) {
		return false
	}
	r.Source.Template = at.Template
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		d.add(diag.Diagnostic{
			Severity: diag.Warning, Code: "mapped-host", Summary: fmt.Sprintf("the host is read as %s", p),
			Detail: "Look-alike or invisible characters make it another name.",
			Hint:   fmt.Sprintf("write %s if you mean that", p), Range: at.Range,
		})
	}
	if name, ok := p.Name(); ok && !deny && firewall.IsDoH(name) {
		d.add(diag.Diagnostic{
			Severity: diag.Warning, Code: "open-resolver", Summary: fmt.Sprintf("%s is a public resolver over HTTPS: names asked there are not checked", p),
			Detail: "A program that asks it learns every address and can put data into the names that it asks for. Wildcards and learning never open such names.",
			Hint:   "remove the line unless the resolver itself is what the worker is for", Range: at.Range,
		})
	}
	if at.Template != "" {
		r.Template, r.Value = at.Template, p.String()
		return true
	}
	r.Host = p
	return true
}

// hintIPv4 is the range that an IPv4-mapped one stands for.
func hintIPv4(p netip.Prefix) string {
	if p.Bits() < 96 {
		return "write the IPv4 range"
	}
	return "write " + netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).String()
}

func (d *decoder) setCIDR(r *firewall.Rule, x *Value[string]) bool {
	p, err := netip.ParsePrefix(x.V)
	switch {
	case err != nil:
		hint := "write ADDRESS/BITS, such as 10.20.0.0/16"
		if a, err := netip.ParseAddr(x.V); err == nil && a.Zone() == "" {
			hint = "write " + netip.PrefixFrom(a, a.BitLen()).String()
		}
		d.fail(x.Source.Range, "bad-cidr", fmt.Sprintf("cidr %q is not a range of addresses", clip(x.V)), hint)
		return false
	case p != p.Masked():
		d.fail(x.Source.Range, "bad-cidr", fmt.Sprintf("cidr %s has bits set outside its mask", p), "write "+p.Masked().String())
		return false
	case p.Addr().Is4In6():
		d.fail(x.Source.Range, "bad-cidr", fmt.Sprintf("cidr %s is an IPv4 range in IPv6 form", p), hintIPv4(p))
		return false
	}
	if class, ok := firewall.ClassifyRange(p); ok && !class.Openable() {
		d.failDetail(x.Source.Range, "never-open", fmt.Sprintf("cidr %s would open %s addresses", p, class),
			"These stay closed whatever a rule says (B26).", closedClassHint(class))
		return false
	}
	r.Source.Template = x.Source.Template
	if x.Source.Template != "" {
		r.Template, r.Value = x.Source.Template, p.String()
		return true
	}
	r.CIDR = p
	return true
}
