package workshop

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// checkEndpoints reports endpoints that contradict each other, or other lines: a host that
// has an endpoint is reached by it alone, and a name means one host in the whole workshop.
func checkEndpoints(w *Workshop, p *problems) {
	named := map[string]firewall.Rule{}
	seen := map[*firewall.Rule]bool{}
	check := func(n *Network) {
		if first := firstRule(n.Allow); first == nil || seen[first] {
			return
		} else {
			seen[first] = true
		}
		inEndpoints(n, p)
		for _, r := range n.Allow {
			if r.Endpoint.IsZero() {
				continue
			}
			o, known := named[r.Endpoint.At]
			if !known {
				named[r.Endpoint.At] = r
			} else if o.Host != r.Host || o.Ports[0] != r.Ports[0] {
				p.add(endpointProblem(r, o, fmt.Sprintf("the endpoint %s is for %s port %s elsewhere", r.Endpoint.At, o.Target(), portsText(o.Ports)), "give one of them another name"))
			}
		}
	}
	check(&w.Container.Network)
	for i := range w.Workers {
		check(&w.Workers[i].Container.Network)
	}
	if len(named) > firewall.MaxEndpoints {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "too-large", Range: diag.Range{Filename: w.File},
			Summary: fmt.Sprintf("there are %d endpoints, more than %d", len(named), firewall.MaxEndpoints), Hint: "split the workshop"})
	}
}

// inEndpoints reports the problems of one list.
func inEndpoints(n *Network, p *problems) {
	byName := map[string]firewall.Rule{}
	byHost := map[firewall.HostPattern][]firewall.Rule{}
	for _, r := range n.Allow {
		e := r.Endpoint
		if e.IsZero() {
			continue
		}
		if n.Mode.V == firewall.Open {
			p.add(diag.Diagnostic{Severity: diag.Error, Code: "bad-endpoint", Range: r.Source.Range,
				Summary: fmt.Sprintf("the endpoint %s bounds nothing in mode open, in which %s is reached without it", e.At, r.Target()),
				Hint:    "write mode: restricted, or remove the line"})
			return
		}
		if o, twice := byName[e.At]; twice {
			p.add(endpointProblem(r, o, fmt.Sprintf("there are two lines for the endpoint %s", e.At), "write all requests into one of them, or give this one another name"))
			continue
		}
		byName[e.At] = r
		for _, o := range byHost[r.Host] {
			if !o.Endpoint.Apart(e) {
				p.add(endpointProblem(r, o, fmt.Sprintf("the endpoints %s and %s for %s may have the same requests", o.Endpoint.At, e.At, r.Target()),
					"give their paths different first segments, or write one line for both"))
			}
		}
		byHost[r.Host] = append(byHost[r.Host], r)
	}
	for _, r := range n.Allow {
		if owner := byHost[r.Host]; len(owner) > 0 && r.Endpoint.IsZero() {
			hint := "remove this line, or the endpoint's"
			if r.Preset != "" {
				hint = "write the hosts of the preset out without this one: `workshop presets " + r.Preset + "` shows them"
			}
			p.add(endpointProblem(r, owner[0], fmt.Sprintf("%s has the endpoint %s, so no other line can have it", r.Target(), owner[0].Endpoint.At), hint))
		}
	}
}

func endpointProblem(r, other firewall.Rule, summary, hint string) diag.Diagnostic {
	return diag.Diagnostic{Severity: diag.Error, Code: "bad-endpoint", Range: r.Source.Range, Summary: summary, Hint: hint,
		Related: []diag.Related{{Message: "the other line", Range: other.Source.Range}}}
}

// endpointHint says how a line that isn't covered differs from one for the same host as an
// endpoint; "" if it doesn't.
func endpointHint(r, o firewall.Rule) string {
	switch {
	case r.Endpoint.Within(o.Endpoint):
		return ""
	case o.Endpoint.IsZero():
		return fmt.Sprintf("the workshop's line for %s isn't an endpoint: add `at` and what it lets through there, or remove them here", o.Target())
	case r.Endpoint.At != o.Endpoint.At:
		return fmt.Sprintf("the workshop reaches %s at the endpoint %s alone: write `at: %s` here, with what it lets through", o.Target(), o.Endpoint.At, o.Endpoint.At)
	case r.Endpoint.Credential != "" && r.Endpoint.Credential != o.Endpoint.Credential:
		return fmt.Sprintf("the workshop's endpoint %s doesn't add the credential %s: write `credential: %s` there, or remove it here", o.Endpoint.At, r.Endpoint.Credential, r.Endpoint.Credential)
	case r.Endpoint.EncodedSlash && !o.Endpoint.EncodedSlash:
		return "add `encoded_slash: true` there, or remove it here"
	}
	return fmt.Sprintf("the workshop's endpoint %s has less: add the rest there, or remove it here", o.Endpoint.At)
}

// endpointText is " at github (GET,HEAD /**) with the credential github" for an endpoint, else "".
func endpointText(e firewall.Endpoint) string {
	if e.IsZero() {
		return ""
	}
	out := fmt.Sprintf(" at %s (%s)", e.At, cmp.Or(clip(strings.Join(e.Texts(), "; ")), "nothing"))
	if e.Credential != "" {
		out += " with the credential " + e.Credential
	}
	return out
}
