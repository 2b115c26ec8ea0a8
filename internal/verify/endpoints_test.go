package verify

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
)

// endpointRule is an endpoint's line.
func endpointRule(at, host string, rules ...string) firewall.Rule {
	r := firewall.Rule{Host: pattern(host), Ports: []firewall.PortRange{{First: 443, Last: 443}}, Endpoint: firewall.Endpoint{At: at, Port: 600}}
	for _, text := range rules {
		rule, err := request.ParseRule(text)
		if err != nil {
			panic(err)
		}
		r.Endpoint.Requests = append(r.Endpoint.Requests, rule)
	}
	return r
}

// detail is what a probe shows of an answer in a sound worker.
func detail(p Probe) string {
	if at, ok := strings.CutPrefix(p.Key, "endpoint."); ok {
		return "workshop: GET /x is not allowed at the endpoint " + at + " (api.example.org). It has these requests:"
	}
	return ""
}

// A request is chosen that the line doesn't have, whatever it has.
func TestChooseEndpoints(t *testing.T) {
	git := endpointRule("git", "git.example.org")
	git.Endpoint.Git = request.Git{Read: []request.Repository{{}}}
	denied := endpointRule("denied", "denied.example.org", "GET /x")
	p := firewall.RoomPolicy{
		Mode: firewall.Restricted, Deny: []firewall.Rule{{Host: pattern("denied.example.org"), Ports: []firewall.PortRange{firewall.AllPorts}}},
		Allow: []firewall.Rule{
			{Host: pattern("plain.example.org"), Ports: []firewall.PortRange{{First: 443, Last: 443}}}, denied,
			endpointRule("some", "some.example.org", "GET /repos/**"), endpointRule("reads", "reads.example.org", "GET,HEAD *"), endpointRule("all", "all.example.org", "*"), git,
			endpointRule("more", "more.example.org", "GET /x"),
		},
	}
	var got []string
	for _, x := range ChooseTries(&p, "v1", 3, netip.MustParseAddrPort("127.1.2.3:61000")).Endpoints {
		got = append(got, x.At+" "+x.Method+" "+x.Path)
		if !x.Around || x.URL != "http://127.0.0.1:600" {
			t.Errorf("%+v", x)
		}
	}
	if want := "some GET /v1, reads POST /v1, git GET /v1"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

// Without an endpoint, and without a network, nothing is tried.
func TestNoEndpoint(t *testing.T) {
	w := sound()
	w.Net.Tries.Endpoints = nil
	if l := lineOf(t, w, "B34"); l.Verdict != NotTested || !strings.Contains(l.Why, "no endpoint") {
		t.Errorf("%+v", l)
	}
	w.Net = nil
	if l := lineOf(t, w, "B34"); l.Verdict != NotTested || !strings.HasPrefix(l.Why, "network: none") {
		t.Errorf("%+v", l)
	}
}
