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
	if !policyTexts(d, n, f, request.ParseRule, (*[]request.Rule)(&l.rules)) {
		return false
	}
	if len(l.rules) > request.MaxRules {
		d.fail(n.rng, "too-large", fmt.Sprintf("requests has %d rules, more than %d", len(l.rules), request.MaxRules), "name the paths by * and /**")
		return false
	}
	return true
}

// requestPattern is in the JSON Schema; request.ParseRule decides.
const requestPattern = `^(\*|[A-Z-]+(,[A-Z-]+)* (\*|/.*))$`

func (l *requestList) schema(*schemaMaker) object { return textOrList(requestPattern) }

// endpoint makes the rule that form describes an endpoint, if it has `at`.
func (d *decoder) endpoint(r *firewall.Rule, n *node, form *ruleForm, deny bool) bool {
	bad := func(at diag.Range, summary, hint string) bool {
		d.fail(at, "bad-endpoint", summary, hint)
		return false
	}
	switch {
	case form.At == nil && form.Requests == nil && form.EncodedSlash == nil && form.Git == nil && form.Credential == nil:
		return true
	case deny:
		return bad(n.rng, "at, requests, git, encoded_slash and credential are for lines of allow", "remove them; a line of deny without them denies the host")
	case form.At == nil && form.Credential != nil:
		return bad(form.Credential.Source.Range, "a credential is added at an endpoint: TLS that a worker's tool speaks itself can't be added to", "add at: NAME and requests to the line; tools then reach the host at http://127.0.0.1:PORT/")
	case form.At == nil:
		return bad(n.rng, "requests and git are of an endpoint: TLS that a worker's tool speaks itself can't be looked into", "add at: NAME to the line; tools then reach the host at http://127.0.0.1:PORT/")
	case form.Requests != nil && form.Git != nil:
		return bad(n.rng, "an endpoint has either requests or git", "write a line with an `at` of its own for each, whose paths have different first segments")
	case form.Requests == nil && form.Git == nil:
		return bad(form.At.Source.Range, "an endpoint needs requests or git", `add what it lets through, such as requests: ["GET,HEAD /repos/acme/**"], "*" for everything, or git: {read: [acme/app]}`)
	case form.Git != nil && form.EncodedSlash != nil:
		return bad(form.EncodedSlash.Source.Range, "encoded_slash is for requests: no repository of git has %2f in its path", "remove encoded_slash")
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
	r.Endpoint = firewall.Endpoint{At: form.At.V, EncodedSlash: form.EncodedSlash != nil && form.EncodedSlash.V}
	if form.Credential != nil {
		r.Endpoint.Credential = form.Credential.V
	}
	if form.Git != nil {
		r.Endpoint.Git = form.Git.rules
		return d.anyRepository(r.Endpoint, n)
	}
	r.Endpoint.Requests = form.Requests.rules
	return true
}

// anyRepository refuses a credential for repositories of every owner that isn't confirmed, and
// warns of one that is.
func (d *decoder) anyRepository(e firewall.Endpoint, n *node) bool {
	switch {
	case e.Credential == "" || !e.Git.Any():
		return true
	case e.Git.AnyRepository:
		d.add(diag.Diagnostic{Severity: diag.Warning, Code: "any-repository", Range: n.rng,
			Summary: fmt.Sprintf("the endpoint %s reaches every repository that the credential %s reaches", e.At, e.Credential), Hint: hintRead})
		return true
	}
	d.fail(n.rng, "bad-endpoint", fmt.Sprintf("the credential %s would be sent for repositories of every owner", e.Credential), hintRead+", or confirm it by any_repository: true")
	return false
}

// namedHost refuses an endpoint whose host isn't one name, written out.
func (d *decoder) namedHost(r *firewall.Rule, host *Value[string]) bool {
	if _, exact := r.Host.Name(); r.Endpoint.IsZero() || exact {
		return true
	}
	d.failDetail(host.Source.Range, "bad-endpoint", "an endpoint is for one host, with its name written out", whyPolicy, "write host: api.example.org, and a line with an `at` of its own for each host")
	return false
}
