package egressacl

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/plainjson"
)

// Envoy writes a bootstrap configuration for Envoy 1.30 or later: a forward proxy on
// 127.0.0.1:3128 whose filters decide by :authority before a name is looked up, and by the
// address before it is connected to.
func Envoy(p *firewall.Policy, _ Options) ([]byte, diag.List) {
	g := gather(p, ofEnvoy)
	if g.list.HasErrors() {
		return nil, g.list
	}
	if len(g.exact)+len(g.wild) > 0 {
		g.tell(diag.Warning, "export-wider", firewall.Rule{}, "Envoy compares one address of a name with the ranges, and may connect to another",
			"The guard compares each address that it connects to.", "keep private ranges closed to Envoy by a firewall of its machine, too")
	}
	name := "workshop"
	if p != nil {
		name = p.Workshop
	}
	text, err := plainjson.Marshal(bootstrap(name, g))
	if err != nil {
		panic(err) // maps, lists, texts and numbers
	}
	var b bytes.Buffer
	_ = json.Indent(&b, text, "", "  ") // it is valid
	b.WriteByte('\n')
	return b.Bytes(), g.list
}

// object and list are JSON.
type (
	object = map[string]any
	list   = []any
)

const typeOf = "type.googleapis.com/envoy.extensions."

// extension is a filter or another part with a configuration.
func extension(name, kind string, config object) object {
	typed := object{"@type": typeOf + kind}
	for k, v := range config {
		typed[k] = v
	}
	return object{"name": "envoy." + name, "typed_config": typed}
}

func bootstrap(name string, g *rules) object {
	cache := object{"name": "egress", "dns_lookup_family": "V4_PREFERRED"}
	manager := object{
		"stat_prefix":                  "egress",
		"upgrade_configs":              list{object{"upgrade_type": "CONNECT"}},
		"skip_xff_append":              true,
		"generate_request_id":          false,
		"server_header_transformation": "PASS_THROUGH",
		"route_config": object{"name": "egress", "virtual_hosts": list{object{"name": "all", "domains": list{"*"}, "routes": list{
			object{"match": object{"connect_matcher": object{}}, "route": object{"cluster": "egress", "upgrade_configs": list{object{"upgrade_type": "CONNECT", "connect_config": object{}}}}},
			object{"match": object{"prefix": "/"}, "route": object{"cluster": "egress"}},
		}}}},
		"http_filters": list{
			rbac("DENY", never(g)),
			rbac("ALLOW", names(g)),
			extension("filters.http.dynamic_forward_proxy", "filters.http.dynamic_forward_proxy.v3.FilterConfig", object{"dns_cache_config": cache, "save_upstream_address": true}),
			rbac("DENY", closed(g)),
			rbac("ALLOW", addresses(g)),
			extension("filters.http.router", "filters.http.router.v3.Router", object{"suppress_envoy_headers": true}),
		},
	}
	return object{
		"node": object{"id": name, "cluster": "workshop"},
		// Patterns of names are larger programs than Envoy takes without this.
		"layered_runtime": object{"layers": list{object{"name": "patterns", "static_layer": object{"re2": object{"max_program_size": object{"error_level": 1000000}}}}}},
		"static_resources": object{
			"listeners": list{object{
				"name":          "egress",
				"address":       object{"socket_address": object{"address": "127.0.0.1", "port_value": 3128}},
				"filter_chains": list{object{"filters": list{extension("filters.network.http_connection_manager", "filters.network.http_connection_manager.v3.HttpConnectionManager", manager)}}},
			}},
			"clusters": list{object{
				"name": "egress", "lb_policy": "CLUSTER_PROVIDED", "connect_timeout": "10s",
				"cluster_type": extension("clusters.dynamic_forward_proxy", "clusters.dynamic_forward_proxy.v3.ClusterConfig", object{"dns_cache_config": cache}),
			}},
		},
	}
}

// rbac is a filter whose policies are matched by any of their permissions.
func rbac(action string, policies object) object {
	return extension("filters.http.rbac", "filters.http.rbac.v3.RBAC", object{"rules": object{"action": action, "policies": policies}})
}

func policy(permissions ...any) object {
	return object{"permissions": permissions, "principals": list{object{"any": true}}}
}

func all(of ...any) object    { return object{"and_rules": object{"rules": of}} }
func either(of ...any) object { return object{"or_rules": object{"rules": of}} }
func not(of any) object       { return object{"not_rule": of} }

// authority matches all of a request's host and port; case doesn't count.
func authority(pattern string) object {
	return object{"header": object{"name": ":authority", "string_match": object{"safe_regex": object{"regex": "(?i)" + pattern}}}}
}

// withPort adds the ports to the pattern of a host; without a port 80 is meant.
func withPort(host string, ports []firewall.PortRange) string {
	suffix := ":" + portPattern(ports)
	if len(ports) == 1 && ports[0] == firewall.AllPorts {
		suffix = ":[0-9]+"
	}
	if firewall.HasPort(ports, 80) {
		suffix = "(" + suffix + ")?"
	}
	return host + suffix
}

const (
	anyHost = `(\[[^\]]*\]|[^:]*)`
	literal = `([0-9.]+|\[[0-9a-f:.]+\])`
)

// upstream matches the address that the name was looked up to.
func upstream(p netip.Prefix) object {
	return object{"matcher": extension("rbac.matchers.upstream_ip_port", "rbac.matchers.upstream_ip_port.v3.UpstreamIpPortMatcher",
		object{"upstream_ip": object{"address_prefix": p.Addr().String(), "prefix_len": p.Bits()}})}
}

func upstreams(ranges []netip.Prefix) (out list) {
	for _, p := range ranges {
		out = append(out, upstream(p))
	}
	return out
}

// somewhere is any address: none is known before the look-up, and then nothing is open.
var somewhere = either(upstream(netip.MustParsePrefix("0.0.0.0/0")), upstream(netip.MustParsePrefix("::/0")))

// never are names that are refused whatever allows them.
func never(g *rules) object {
	out := object{}
	var names, hosts list
	for _, n := range firewall.UnopenableNames() {
		names = append(names, authority(`(.*\.)?`+escape(n)+`\.?(:[0-9]+)?`))
	}
	out["never"] = policy(names...)
	for _, h := range g.endpoints {
		hosts = append(hosts, authority(escape(h)+`\.?(:[0-9]+)?`))
	}
	if len(hosts) > 0 {
		out["endpoints"] = policy(hosts...)
	}
	for _, r := range g.deny {
		if !r.CIDR.IsValid() {
			add(out, "deny", r, authority(withPort(denyPattern(r.Host), r.Ports)))
		}
	}
	return out
}

// add adds a permission to the policy of a line.
func add(policies object, verb string, r firewall.Rule, permission object) {
	name := strings.TrimSpace(verb + " " + positions([]firewall.Rule{r}))
	if p, ok := policies[name].(object); ok {
		p["permissions"] = append(p["permissions"].([]any), permission)
		return
	}
	policies[name] = policy(permission)
}

func host(r firewall.Rule) object { return authority(withPort(allowPattern(r.Host), r.Ports)) }

// names lets through what lines of allow have, before anything is looked up.
func names(g *rules) object {
	out := object{}
	for _, r := range g.exact {
		add(out, "allow", r, host(r))
	}
	for _, r := range g.wild {
		add(out, "allow", r, all(wildcard(g, r)...))
	}
	for _, r := range g.ranges {
		add(out, "allow", r, authority(withPort(literal, r.Ports)))
	}
	return out
}

// wildcard is a line's names without those that no wildcard reaches.
func wildcard(g *rules, r firewall.Rule) list {
	out := list{host(r), not(authority(tooLong + `(:[0-9]+)?`))}
	for _, n := range resolvers([]firewall.Rule{r}) {
		out = append(out, not(authority(`(.*\.)?`+escape(n)+`(:[0-9]+)?`)))
	}
	return out
}

// closed are addresses that are refused whatever name has them: those of the never-list,
// denied ones, and private ones of names that may not have them.
func closed(g *rules) object {
	out := object{"never": policy(upstreams(neverRanges())...)}
	byName := not(authority(withPort(literal, []firewall.PortRange{firewall.AllPorts})))
	out["benchmark"] = policy(all(byName, either(upstreams(benchmarkRanges())...)))
	is := list{byName, either(upstreams(privateRanges())...)}
	if names := privateNames(g); len(names) > 0 {
		is = append(is, not(either(names...)))
	}
	out["private"] = policy(all(is...))
	for _, r := range g.deny {
		if r.CIDR.IsValid() {
			add(out, "deny", r, all(authority(withPort(anyHost, r.Ports)), upstream(r.CIDR)))
		}
	}
	return out
}

// privateNames matches the names of lines with `private: true`, but for those that a line
// without it decides about.
func privateNames(g *rules) (out list) {
	var before []firewall.Rule
	for _, r := range slices.Concat(g.exact, g.wild) {
		if r.Private {
			is := list{host(r)}
			for _, b := range before {
				if r.Host.Covers(b.Host) {
					is = append(is, not(host(b)))
				}
			}
			out = append(out, all(is...))
			continue
		}
		before = append(before, r)
	}
	return out
}

// addresses lets through names that have an address, and the addresses of ranges.
func addresses(g *rules) object {
	out := object{"names": policy(all(not(authority(withPort(literal, []firewall.PortRange{firewall.AllPorts}))), somewhere))}
	for _, r := range g.ranges {
		add(out, "allow", r, all(authority(withPort(literal, r.Ports)), upstream(r.CIDR)))
	}
	return out
}
