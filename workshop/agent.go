package workshop

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// Agent is a line of `agents`: what the user's ssh-agent signs for a worker by one of the
// user's keys. Exactly one of Hosts and Namespaces is set.
type Agent struct {
	// Credential is the name that the key has in the user's file of credentials.
	Credential string
	// Hosts are those that the key logs in at, by SSH.
	Hosts []AgentHost
	// Namespaces are those that messages are signed for, as git (SSHSIG).
	Namespaces []string
	Source     diag.Source
}

// AgentHost is a host with its port.
type AgentHost struct {
	Name string
	Port uint16
}

// String is HOST:PORT; a name has no colon.
func (h AgentHost) String() string { return h.Name + ":" + strconv.Itoa(int(h.Port)) }

// Uses are the things that the line has, one by one: "ssh git.example.org:22", "sign git".
func (a Agent) Uses() (out []string) {
	for _, h := range a.Hosts {
		out = append(out, "ssh "+h.String())
	}
	for _, n := range a.Namespaces {
		out = append(out, "sign "+n)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// String is "ssh git.example.org:22 by work-key", equal for lines that say the same.
func (a Agent) String() string {
	uses, what := a.Uses(), "ssh "
	if len(a.Hosts) == 0 {
		what = "sign "
	}
	for i := range uses {
		uses[i] = strings.TrimPrefix(uses[i], what)
	}
	return what + strings.Join(uses, ",") + " by " + a.Credential
}

// agentForm is a line of `agents`.
type agentForm struct {
	Source     diag.Source
	SSH        *Value[string]   `key:"ssh" literal:"Which of your keys is used must be visible in the file." example:"write ssh: work-key" doc:"The user's key, by its name in workshop credential, that logs in at hosts."`
	Hosts      *agentHosts      `key:"hosts" example:"write hosts: [git.example.org]" doc:"Of ssh: where it logs in; HOST or HOST:PORT, port 22 by default."`
	Sign       *Value[string]   `key:"sign" literal:"Which of your keys is used must be visible in the file." example:"write sign: work-key" doc:"The user's key that signs messages, as commits."`
	Namespaces *agentNamespaces `key:"namespaces" example:"write namespaces: [git]" doc:"Of sign: what messages are for (ssh-keygen -Y sign -n); git is that of commits and tags."`
}

func (*agentForm) title() string { return "a line of agents" }

var agentKeys = map[string]instead{
	"key":        {whyCredential, hintAgent},
	"credential": {"", hintAgent},
	"host":       {"", "write hosts: [git.example.org]"},
	"namespace":  {"", "write namespaces: [git]"},
	"port":       {"", "write hosts: [\"git.example.org:2222\"]"},
	"gpg":        {"Commits are signed by SSH keys alone.", hintAgent},
}

const (
	hintAgent     = "write {ssh: NAME, hosts: [git.example.org]} or {sign: NAME, namespaces: [git]}"
	hintAgentLine = "{ssh: NAME, hosts: [git.example.org]}"
	maxAgents     = 16
)

func (a *Agent) decode(d *decoder, n *node, f *field) bool {
	a.Source = diag.Source{Range: n.rng}
	if n.kind != mapNode {
		d.wrongType(n, f, "a mapping with ssh or sign")
		return false
	}
	var form agentForm
	if !d.mapping(n, reflect.ValueOf(&form).Elem()) {
		return false
	}
	bad := func(summary, hint string) bool {
		d.fail(n.rng, "bad-agent", summary, hint)
		return false
	}
	name := form.SSH
	switch {
	case (form.SSH == nil) == (form.Sign == nil):
		return bad("a line of agents is for one of ssh and sign", hintAgent)
	case form.SSH != nil && (form.Hosts == nil || form.Namespaces != nil):
		return bad("a line with ssh has hosts", "write {ssh: NAME, hosts: [git.example.org]}")
	case form.Sign != nil && (form.Namespaces == nil || form.Hosts != nil):
		return bad("a line with sign has namespaces", "write {sign: NAME, namespaces: [git]}")
	case form.SSH != nil:
		a.Hosts = *form.Hosts
	default:
		name, a.Namespaces = form.Sign, *form.Namespaces
	}
	if !firewall.ValidEndpointName(name.V) {
		d.fail(name.Source.Range, "bad-agent", fmt.Sprintf("%q is not a name: "+firewall.EndpointNameForm, clip(name.V)), "write the name that your key has in `workshop credential list`, such as work-key")
		return false
	}
	a.Credential = name.V
	return true
}

func (a *Agent) schema(g *schemaMaker) object {
	return g.define("agent", func() object {
		out := g.form(reflect.TypeFor[agentForm]())
		out["oneOf"] = []object{
			{"required": []string{"ssh", "hosts"}, "properties": object{"sign": false, "namespaces": false}},
			{"required": []string{"sign", "namespaces"}, "properties": object{"ssh": false, "hosts": false}},
		}
		return out
	})
}

// agentHosts is `hosts:`, a host or a list of them.
type agentHosts []AgentHost

func parseAgentHost(text string) (AgentHost, error) {
	host, port, hasPort := strings.Cut(text, ":")
	name, err := firewall.ParseName(host)
	if err != nil || name.String() != strings.ToLower(host) {
		return AgentHost{}, fmt.Errorf("%q is not the name of one host", clip(text))
	}
	h := AgentHost{Name: name.String(), Port: 22}
	if hasPort {
		ports, err := firewall.ParsePorts(port)
		if err != nil || len(ports) != 1 || ports[0].First != ports[0].Last {
			return AgentHost{}, fmt.Errorf("%q has no port from 1 to 65535 after the colon", clip(text))
		}
		h.Port = ports[0].First
	}
	return h, nil
}

func (l *agentHosts) decode(d *decoder, n *node, f *field) bool {
	return policyTexts(d, n, f, parseAgentHost, (*[]AgentHost)(l))
}

func (*agentHosts) schema(*schemaMaker) object {
	return textOrList(`^[^*:/@\s_]+(:[0-9]+)?$`)
}

// agentNamespaces is `namespaces:`, one or a list of them.
type agentNamespaces []string

// namespacePattern is that of namespaces; PROTOCOL.sshsig has any text.
const namespacePattern = `^[A-Za-z0-9][A-Za-z0-9@._+-]{0,63}$`

var namespaceRE = lazily(namespacePattern)

func parseNamespace(text string) (string, error) {
	if !namespaceRE().MatchString(text) {
		return "", fmt.Errorf("%q is not a namespace: it has 1 to 64 letters, digits and @._+-", clip(text))
	}
	return text, nil
}

func (l *agentNamespaces) decode(d *decoder, n *node, f *field) bool {
	return policyTexts(d, n, f, parseNamespace, (*[]string)(l))
}

func (*agentNamespaces) schema(*schemaMaker) object { return textOrList(namespacePattern) }

// effectiveAgents are a worker's: the workshop's, unless it has a `network` of its own, which
// names those that it gets.
func effectiveAgents(base Network, n *partialNetwork) []Agent {
	if n == nil {
		return base.Agents
	}
	return list(n.Agents)
}

// agentsExcess are the lines of inner that have a use which no line of outer has.
func agentsExcess(inner, outer []Agent, work *effort) (out []excess) {
	if same(inner, outer) || !work.spend(len(inner)+len(outer)) {
		return nil
	}
	has := map[string]bool{}
	for _, a := range outer {
		for _, use := range a.Uses() {
			has[a.Credential+" "+use] = true
		}
	}
	for _, a := range inner {
		if !slices.ContainsFunc(a.Uses(), func(use string) bool { return !has[a.Credential+" "+use] }) {
			continue
		}
		x := excess{key: "network.agents", at: a.Source.Range, haveOf: Part{Agent: &a},
			summary: fmt.Sprintf("the workshop's agents have no line for %s", a), hint: "add it to the workshop's agents, or remove it here"}
		if at := slices.IndexFunc(outer, func(o Agent) bool {
			return o.Credential == a.Credential && (len(o.Hosts) > 0) == (len(a.Hosts) > 0)
		}); at >= 0 {
			x.grant, x.grantedOf = outer[at].Source.Range, Part{Agent: &outer[at]}
		}
		out = append(out, x)
	}
	return out
}

// checkAgents warns of hosts of a line at which no worker that has it can log in.
func checkAgents(w *Workshop, p *problems) {
	type use struct {
		line diag.Range
		host AgentHost
	}
	has := map[use]bool{} // whether a worker reaches it
	var order []use
	for i := range w.Workers {
		n := &w.Workers[i].Container.Network
		for _, a := range n.Agents {
			for _, h := range a.Hosts {
				u := use{a.Source.Range, h}
				if _, known := has[u]; !known {
					order = append(order, u)
				}
				has[u] = has[u] || h.reached(n)
			}
		}
	}
	for _, u := range order {
		if !has[u] {
			p.add(diag.Diagnostic{Severity: diag.Warning, Code: "agent-unreached", Range: u.line,
				Summary: fmt.Sprintf("no worker with this line reaches %s", u.host), Hint: fmt.Sprintf("add \"%s\" to allow", u.host)})
		}
	}
}

// reached reports whether a network allows a host, private or not.
func (h AgentHost) reached(n *Network) bool {
	name, err := firewall.ParseHostPattern(h.Name)
	if err != nil || n.Mode.V == firewall.None {
		return false
	}
	r := firewall.Rule{Host: name, Ports: []firewall.PortRange{{First: h.Port, Last: h.Port}}}
	private := r
	private.Private = true
	return allowedBy(r, *n) || allowedBy(private, *n)
}
