package session

import (
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
)

// A model is told where a host with an endpoint is reached, and by which requests.
func TestGrantedEndpoint(t *testing.T) {
	host, err := firewall.ParseHostPattern("api.example.org")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := request.ParseRule("GET /a/**")
	if err != nil {
		t.Fatal(err)
	}
	n := grantedNetwork{Mode: firewall.Restricted, Allow: ruleLines([]firewall.Rule{{
		Host: host, Ports: []firewall.PortRange{{First: 443, Last: 443}}, Endpoint: firewall.Endpoint{At: "the-api", Requests: request.Rules{rule}},
	}})}
	const want = "TCP only to api.example.org (only by HTTP to the URL in $WORKSHOP_ENDPOINT_THE_API, with these requests: GET /a/**) (a name without a port: 80 and 443). The guard refuses all else to the worker's network, its room"
	if got := n.text(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
