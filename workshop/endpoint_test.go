package workshop

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
)

// allowOf is "HOST PORTS [AT RULE;RULE…]".
func allowOf(t testing.TB, text string) firewall.Rule {
	t.Helper()
	words := strings.SplitN(text, " ", 4)
	host, err := firewall.ParseHostPattern(words[0])
	if err != nil {
		t.Fatal(err)
	}
	r := firewall.Rule{Host: host, Source: diag.Source{Range: diag.Range{Filename: "workshop.yaml"}}}
	if r.Ports, err = firewall.ParsePorts(words[1]); err != nil {
		t.Fatal(err)
	}
	if len(words) == 4 {
		r.Endpoint.At = words[2]
		for s := range strings.SplitSeq(words[3], ";") {
			x, err := request.ParseRule(s)
			if err != nil {
				t.Fatal(err)
			}
			r.Endpoint.Requests = append(r.Endpoint.Requests, x)
		}
	}
	return r
}

func network(t testing.TB, mode firewall.Mode, lines ...string) Network {
	t.Helper()
	n := Network{Mode: Value[firewall.Mode]{V: mode}}
	for _, l := range lines {
		n.Allow = append(n.Allow, allowOf(t, l))
	}
	return n
}

// B40: a worker's list is within the workshop's where each host that has an endpoint there
// is reached at it alone, for the same requests or fewer.
func TestNarrowEndpoints(t *testing.T) {
	const api = "api.example.org 443 api GET,POST /repos/**"
	for _, c := range []struct {
		name         string
		inner, outer []string
		want         string // a part of the hint; "" for none
	}{
		{"itself", []string{api}, []string{api}, ""},
		{"fewer requests", []string{"api.example.org 443 api GET /repos/acme/*"}, []string{api}, ""},
		{"none", nil, []string{api}, ""},
		{"more requests", []string{"api.example.org 443 api GET /user"}, []string{api}, "has less"},
		{"another name", []string{"api.example.org 443 b GET /repos/acme"}, []string{api}, "write `at: api`"},
		{"a bare line", []string{"api.example.org 443"}, []string{api}, "at the endpoint api alone"},
		{"an endpoint of a bare line", []string{api}, []string{"api.example.org 443"}, "isn't an endpoint"},
		{"an endpoint of a wildcard", []string{api}, []string{"*.example.org 443"}, "isn't an endpoint"},
		{"beside a wildcard", []string{api, "*.example.org 22,443"}, []string{api, "*.example.org 22,443"}, ""},
		{"less beside a wildcard", []string{"api.example.org 443 api GET /repos/acme/*", "*.example.org 443"}, []string{api, "*.example.org 443"}, ""},
		{"by a wildcard", []string{"*.example.org 443"}, []string{api, "*.example.org 443"}, "with `at: api` here too"},
		{"by another port of a wildcard", []string{"*.example.org 22"}, []string{api, "*.example.org 22"}, "with `at: api` here too"},
		{"by its name at another port", []string{"api.example.org 22"}, []string{api, "*.example.org 22"}, "with `at: api` here too"},
		{"a name beside it", []string{"b.example.org 443"}, []string{api, "*.example.org 443"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, exact := range []bool{false, true} {
				got := networkExcess(network(t, firewall.Restricted, c.inner...), network(t, firewall.Restricted, c.outer...), &effort{left: 1 << 20, exact: exact})
				if (len(got) == 0) != (c.want == "") || len(got) > 0 && !strings.Contains(got[0].hint, c.want) {
					t.Errorf("exact %v: %+v, want %q", exact, got, c.want)
				}
			}
		})
	}
	if got := networkExcess(network(t, firewall.Restricted, api), network(t, firewall.Open), &effort{left: 1 << 20}); len(got) != 1 {
		t.Errorf("an endpoint of its own below open: %+v", got)
	}
}

func TestEndpointsOfAWorkshop(t *testing.T) {
	const api = "api.example.org 443 api GET /a/**"
	for _, c := range []struct {
		name    string
		workers []Network
		want    string // "" for no problem
	}{
		{"one", []Network{network(t, firewall.Restricted, api)}, ""},
		{"the same in two lists", []Network{network(t, firewall.Restricted, api), network(t, firewall.Restricted, api)}, ""},
		{"two of a host", []Network{network(t, firewall.Restricted, api, "api.example.org 443 b GET /b/**")}, ""},
		{"with the same requests", []Network{network(t, firewall.Restricted, api, "api.example.org 443 b GET /a/x")}, "may have the same requests"},
		{"twice", []Network{network(t, firewall.Restricted, api, api)}, "two lines for the endpoint api"},
		{"a bare line", []Network{network(t, firewall.Restricted, api, "api.example.org 22")}, "no other line can have it"},
		{"in mode open", []Network{network(t, firewall.Open, api)}, "mode open"},
		{"another host elsewhere", []Network{network(t, firewall.Restricted, api), network(t, firewall.Restricted, "b.example.org 443 api *")}, "is for api.example.org port 443 elsewhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &Workshop{}
			for _, n := range c.workers {
				w.Workers = append(w.Workers, Worker{Container: Container{Network: n}})
			}
			p := &problems{}
			checkEndpoints(w, p)
			got := p.done("workshop.yaml")
			if (len(got) == 0) != (c.want == "") || len(got) > 0 && !strings.Contains(got[0].Summary, c.want) {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
	if a, b := network(t, firewall.Restricted, api), network(t, firewall.Restricted, "api.example.org 443 api GET /b/**"); policyKey(&a) == policyKey(&b) {
		t.Error("networks with other requests share a room")
	}
}
