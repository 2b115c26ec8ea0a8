package workshop

import (
	"fmt"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
)

// requestList is `requests:` of a line of allow: a rule or a list of them.
type requestList struct{ rules request.Rules }

func (l *requestList) decode(d *decoder, n *node, f *field) bool {
	nodes := []*node{n}
	if n.kind == listNode {
		nodes = n.items
	}
	ok := true
	for _, x := range nodes {
		text, read := d.policyText(x, f)
		if !read {
			ok = false
			continue
		}
		r, err := request.ParseRule(text.V)
		if err != nil {
			d.fail(text.Source.Range, "bad-value", "requests: "+err.Error(), "")
			ok = false
			continue
		}
		l.rules = append(l.rules, r)
	}
	switch {
	case !ok:
	case len(l.rules) == 0:
		d.fail(n.rng, "bad-value", "requests is empty, so nothing could be asked", `write requests: ["GET,HEAD /repos/acme/**"], or "*" for everything`)
		return false
	case len(l.rules) > request.MaxRules:
		d.fail(n.rng, "too-large", fmt.Sprintf("requests has %d rules, more than %d", len(l.rules), request.MaxRules), "name the paths by * and /**")
		return false
	}
	return ok
}

// requestPattern is in the JSON Schema; request.ParseRule decides.
const requestPattern = `^(\*|[A-Z-]+(,[A-Z-]+)* (\*|/.*))$`

func (l *requestList) schema(*schemaMaker) object {
	one := object{"type": "string", "pattern": requestPattern}
	return object{"anyOf": []object{one, {"type": "array", "items": one, "minItems": 1, "maxItems": request.MaxRules}}}
}

// endpoint makes the rule that form describes an endpoint, if it has `at`.
func (d *decoder) endpoint(r *firewall.Rule, n *node, form *ruleForm, deny bool) bool {
	bad := func(at diag.Range, summary, hint string) bool {
		d.fail(at, "bad-endpoint", summary, hint)
		return false
	}
	switch {
	case form.At == nil && form.Requests == nil && form.EncodedSlash == nil && form.Credential == nil:
		return true
	case deny:
		return bad(n.rng, "at, requests, encoded_slash and credential are for lines of allow", "remove them; a line of deny without them denies the host")
	case form.At == nil && form.Credential != nil:
		return bad(form.Credential.Source.Range, "a credential is added at an endpoint: TLS that a worker's tool speaks itself can't be added to", "add at: NAME and requests to the line; tools then reach the host at http://127.0.0.1:PORT/")
	case form.At == nil:
		return bad(n.rng, "requests are of an endpoint: TLS that a worker's tool speaks itself can't be looked into", "add at: NAME to the line; tools then reach the host at http://127.0.0.1:PORT/")
	case form.Requests == nil:
		return bad(form.At.Source.Range, "an endpoint needs requests", `add what it lets through, such as requests: ["GET,HEAD /repos/acme/**"], or "*" for everything`)
	case !firewall.ValidEndpointName(form.At.V):
		return bad(form.At.Source.Range, fmt.Sprintf("at %q is not a name: "+firewall.EndpointNameForm, clip(form.At.V)), "write at: github or another short word")
	case form.Credential != nil && !firewall.ValidEndpointName(form.Credential.V):
		return bad(form.Credential.Source.Range, fmt.Sprintf("credential %q is not a name: "+firewall.EndpointNameForm, clip(form.Credential.V)), "write the name that your credential has in `workshop credential list`, such as credential: github")
	case form.CIDR != nil:
		return bad(form.CIDR.Source.Range, "an endpoint is for a host with a name, whose certificate is checked", "write host: NAME")
	case form.ECH != nil:
		return bad(n.rng, "ech is not for endpoints: the guard itself speaks TLS with the host", "remove ech")
	case form.Port != nil && (len(r.Ports) != 1 || r.Ports[0].First != r.Ports[0].Last):
		return bad(n.rng, "an endpoint is for one port", "write port: 443, and a line for each other port")
	}
	if form.Port == nil {
		r.Ports = []firewall.PortRange{{First: 443, Last: 443}}
	}
	r.Endpoint = firewall.Endpoint{At: form.At.V, Requests: form.Requests.rules, EncodedSlash: form.EncodedSlash != nil && form.EncodedSlash.V}
	if form.Credential != nil {
		r.Endpoint.Credential = form.Credential.V
	}
	return true
}

// namedHost refuses an endpoint whose host isn't one name, written out.
func (d *decoder) namedHost(r *firewall.Rule, host *Value[string]) bool {
	if _, exact := r.Host.Name(); r.Endpoint.IsZero() || exact {
		return true
	}
	d.failDetail(host.Source.Range, "bad-endpoint", "an endpoint is for one host, with its name written out", whyPolicy, "write host: api.example.org, and a line with an `at` of its own for each host")
	return false
}
