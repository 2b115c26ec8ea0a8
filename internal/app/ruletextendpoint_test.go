package app

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/grant"
)

// The texts of a line with an endpoint have all of it: who reviews one sees what is let
// through.
func TestTextsOfAnEndpoint(t *testing.T) {
	host, err := firewall.ParseHostPattern("api.example.org")
	if err != nil {
		t.Fatal(err)
	}
	var rules request.Rules
	for _, text := range []string{"GET,HEAD /a/**", "POST /b"} {
		r, err := request.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	r := firewall.Rule{
		Host: host, Ports: []firewall.PortRange{{First: 443, Last: 443}}, Private: true,
		Endpoint: firewall.Endpoint{At: "api", Requests: rules, EncodedSlash: true, Credential: "key"},
	}
	other := r
	other.Ports, other.Private = []firewall.PortRange{{First: 8443, Last: 8443}}, false
	other.Endpoint.EncodedSlash, other.Endpoint.Credential = false, ""
	for want, got := range map[string]string{
		`{host: api.example.org, at: api, requests: ["GET,HEAD /a/**", "POST /b"], encoded_slash: true, credential: key, private: true}`: RuleLine(r, false),
		`{host: api.example.org, port: 8443, at: api, requests: ["GET,HEAD /a/**", "POST /b"]}`:                                          RuleLine(other, false),
		"api.example.org tcp/443 at api [GET,HEAD /a/**; POST /b] encoded_slash credential key private":                                  grant.RuleText(r, grant.Values),
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	if p := NewPolicyRule(r); p.At != "api" || len(p.Requests) != 2 || !p.EncodedSlash || p.Credential != "key" {
		t.Errorf("%+v", p)
	}
	lines := resolveRules([]firewall.Rule{r, r}, "80,443")
	if got, ok := lines[0].(resolvedRule); len(lines) != 1 || !ok || got.At != "api" || len(got.Requests.([]string)) != 2 || !got.EncodedSlash || got.Credential != "key" {
		t.Errorf("%+v", lines)
	}

	var git request.Git
	if err := json.Unmarshal([]byte(`{"read":["acme/lib"],"push":[{"repository":"acme/app","refs":["agent/*","refs/tags/*"]}],"delete":[{"repository":"acme/app","refs":["agent/*"]}],"any_repository":true}`), &git); err != nil {
		t.Fatal(err)
	}
	other.Endpoint = firewall.Endpoint{At: "api", Git: git}
	texts := "git: read acme/lib; git: push acme/app: agent/*, refs/tags/*; git: delete acme/app: agent/*"
	for want, got := range map[string]string{
		`{host: api.example.org, port: 8443, at: api, git: {read: ["acme/lib"], push: {"acme/app": ["agent/*", "refs/tags/*"]}, delete: {"acme/app": ["agent/*"]}, any_repository: true}}`: RuleLine(other, false),
		"api.example.org tcp/8443 at api [" + texts + "]": grant.RuleText(other, grant.Values),
		texts: NewPolicyRule(other).LetsThrough(),
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	b, err := yaml.Marshal(resolveRules([]firewall.Rule{other, other}, "80,443"))
	flow := strings.Join(strings.Fields(string(b)), " ")
	if want := "git: read: - acme/lib push: acme/app: - agent/* - refs/tags/* delete: acme/app: - agent/* any_repository: true"; err != nil || !strings.HasSuffix(flow, want) || strings.Count(flow, "host") != 1 {
		t.Errorf("%v\n%s", err, b)
	}
}
