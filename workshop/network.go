package workshop

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

const whyPolicy = "The guard's policy is a generated file, which people review."

// networkForm is the long form of `network:`.
type networkForm struct {
	Source          diag.Source
	Mode            *Value[firewall.Mode] `key:"mode" literal:"How far a worker reaches must be visible in the file." example:"write mode: restricted" default:"none" doc:"Loopback only (none), what allow says (restricted), or any public name and address over TCP (open)."`
	Allow           *[]allowLine          `key:"allow" example:"write allow: [api.github.com, \"github.com:22\", {preset: npm}]" doc:"What may be reached: hosts, ranges of addresses, presets."`
	Deny            *[]denyLine           `key:"deny" example:"write deny: [gist.github.com]" doc:"What is never reached; deny wins over allow."`
	Agents          *[]Agent              `key:"agents" example:"write agents: [{ssh: work-key, hosts: [git.example.org]}]" doc:"What the user's ssh-agent signs: log-ins by SSH, and commits. A worker with a network of its own has none but those that it names."`
	DNS             *[]Upstream           `key:"dns" example:"write dns: [198.51.100.53]" doc:"Upstream resolvers of the guard; default: the engine's. An address of the machine itself must come from a variable of yours."`
	Proxy           *Upstream             `key:"proxy" example:"write proxy: http://proxy.internal:3128" doc:"Upstream HTTP proxy of the guard; default: none. An address of the machine itself, a user and a password must come from a variable of yours."`
	ProxyCredential *Value[string]        `key:"proxy_credential" literal:"Which of your credentials is used must be visible in the file." example:"write proxy_credential: corp" doc:"The user's credential for proxy."`
	Room            *Value[string]        `key:"room" validate:"oneof=shared own" literal:"The rooms are part of the generated project." example:"write room: own" default:"shared" doc:"Share the network namespace with workers of the same policy, or with no other worker (own). Imported workers share theirs only with those of the same import."`
}

func (*networkForm) title() string { return "network" }

var networkKeys = map[string]instead{
	"ports":     {"", "write ports next to network"},
	"policy":    {"", "write mode, allow and deny"},
	"rules":     {"", "write allow and deny"},
	"allowlist": {"", "write allow"},
	"preset":    {"", "write allow: [{preset: NAME}]"},
	"presets":   {"", "write allow: [{preset: NAME}]"},
	"resolvers": {"", "write dns"},
	"agent":     {"", "write agents: [" + hintAgentLine + "]"},
	"ssh":       {"", "write agents: [" + hintAgentLine + "]"},
}

func (w *partialNetwork) decode(d *decoder, n *node, f *field) bool {
	w.Source = diag.Source{Range: n.rng}
	mode := formOf(reflect.TypeFor[networkForm]()).byKey["mode"]
	switch n.kind {
	case scalarNode:
		if n.isNull() {
			d.wrongType(n, f, "none, restricted, open or a mapping")
			return false
		}
		x := *mode
		x.keyName = "network"
		m := &Value[firewall.Mode]{}
		if !m.decode(d, n, &x) {
			return false
		}
		w.Mode = m
		return true
	case mapNode:
	default:
		g := *f
		g.example = "write network: {mode: restricted, allow: [api.github.com, {preset: npm}]}"
		d.wrongType(n, &g, "none, restricted, open or a mapping")
		return false
	}
	var form networkForm
	before := d.errors
	d.mapping(n, reflect.ValueOf(&form).Elem())
	w.Mode, w.Proxy, w.ProxyCredential = form.Mode, form.Proxy, form.ProxyCredential
	if x := form.ProxyCredential; x != nil && !firewall.ValidEndpointName(x.V) {
		d.in("proxy_credential", func() {
			d.fail(x.Source.Range, "bad-value", fmt.Sprintf("proxy_credential %q is not a name: "+firewall.EndpointNameForm, clip(x.V)), "write the name that your credential has in `workshop credential list`, such as proxy_credential: corp")
		})
	}
	if form.Allow != nil {
		w.Allow = new([]firewall.Rule)
		for _, line := range *form.Allow {
			*w.Allow = append(*w.Allow, line...)
		}
		d.checkBudgets(*w.Allow)
	}
	if form.Deny != nil {
		w.Deny = new([]firewall.Rule)
		for _, line := range *form.Deny {
			*w.Deny = append(*w.Deny, firewall.Rule(line))
		}
	}
	if w.Agents = form.Agents; w.Agents != nil && len(*w.Agents) > maxAgents {
		d.in("agents", func() {
			d.fail((*w.Agents)[maxAgents].Source.Range, "too-large", fmt.Sprintf("agents has %d lines, more than %d", len(*w.Agents), maxAgents), "write several hosts in one line")
		})
	}
	if form.DNS != nil {
		w.DNS = form.DNS
		d.in("dns", func() {
			if extra := (*form.DNS)[min(len(*form.DNS), firewall.MaxResolvers):]; len(extra) > 0 {
				d.fail(extra[0].Source.Range, "too-large", fmt.Sprintf("dns has %d resolvers, more than %d", len(*form.DNS), firewall.MaxResolvers), "remove the rest")
			}
		})
	}
	if form.Room != nil {
		w.OwnRoom = &Value[bool]{V: form.Room.V == "own", Source: form.Room.Source}
	}
	if w.Mode != nil && w.Mode.V == firewall.None && w.Allow != nil && len(*w.Allow) > 0 {
		d.in("allow", func() {
			d.fail(w.Mode.Source.Range, "allow-without-mode", "allow has no effect with `mode: none`", "write mode: restricted, or remove allow")
		})
	}
	return d.errors == before
}

// modeUnknown reports a mode that isn't ours: of Compose, or a yes or no.
func (d *decoder) modeUnknown(at diag.Range, text, name string) {
	const every = "write network: {mode: restricted, allow: [api.github.com]} with the hosts that are needed, or network: open for every public one"
	switch strings.ToLower(text) {
	case "false", "no", "off", "deny", "isolated":
		d.fail(at, "bad-value", fmt.Sprintf("%s %q is not a valid value", name, text), "write "+name+": none")
	case "host", "bridge", "default":
		d.failDetail(at, "bad-value", fmt.Sprintf("%s %q is not a valid value", name, text), "A worker is never in a network of the host or the engine.", every)
	case "true", "yes", "on", "internet", "public", "full", "all", "allow", "allowlist":
		hint := every
		if name == "mode" {
			hint = "write mode: restricted for the hosts of allow, or mode: open for every public one"
		}
		d.fail(at, "bad-value", fmt.Sprintf("%s %q is not a valid value", name, text), hint)
	default:
		d.notOneOf(at, text, []string{"none", "restricted", "open"}, name)
	}
}

// in runs a check of the key below the one that is being read.
func (d *decoder) in(key string, check func()) {
	if d.scope == nil {
		check()
		return
	}
	d.scope.path = append(d.scope.path, key)
	defer d.leave()
	check()
}
